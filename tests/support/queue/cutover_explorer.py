"""Every order in which an application may be switched while passes copy its object, explored in memory.

One object whose row stays, one worker that may die, two instances of an application. Old ones write to the legacy
bucket, new ones to production. Versions are numbers; a tick of the one true clock lies between any two writes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from support.queue.exploring import Violation, visit_all
from support.queue.rewrite_explorer import FOLLOWED, Order, Stored

LONG = 3
"""Ticks that a slow copy takes."""
Stage = Literal["passes", "moment", "finishing", "verifying", "over"]
Ours = Literal["moment", "confirmed"]
"""Until when what is in production and cannot be put in order is taken for a copy: until the application may be
switched, or until a person has confirmed that it was."""


class State(NamedTuple):
    """Both buckets, the instances, the worker and the command. `left`: how often the application may still write."""

    legacy: Stored | None
    production: Stored | None = None
    is_own: bool = False
    is_noted: bool = False
    is_pending: bool = False
    """Whether a write to production was noted before it, and nobody has noted how it ended: since the moment only."""
    instances: tuple[Literal["old", "new"], ...] = ("old", "old")
    stage: Stage = "passes"
    worker: Literal["idle", "read", "written", "done"] = "idle"
    held: int = 0
    seen: Stored | None = None
    """What stood in production when the worker decided to write there."""
    times: int = 0
    is_overtaken: bool = False
    """Whether the object was rewritten between the reading of a copy and its writing."""
    named: str | None = None
    newest: int = 0
    is_deleted: bool = False
    may_arrive: bool = False
    """Whether a copy was on its way when the object was deleted: docs/application.md says that it stays."""
    moment: int | None = None
    """The tick since which the application may be writing to production."""
    has_returned: bool = False
    abandoned: tuple[int, int] | None = None
    """The ticks between which it wrote to production before it was switched back."""
    tick: int = 0
    left: int = 2
    deletions: int = 0
    deaths: int = 0
    returns: int = 0


@dataclass(frozen=True)
class Scenario:
    """The rules that hold, by how many ticks production's clock is ahead, and what may happen how often."""

    order: Order = "bounded"
    skew: int = 0
    looks_again: bool = True
    ours_until: Ours = "moment"
    notes_before: bool = True
    """Whether a write is noted before it is made."""
    is_slow: bool = False
    """Whether a copy may take so long that times put it after a rewrite of what it has read."""
    forgets_return: bool = False
    """Whether the time before a return to the legacy bucket is forgotten."""
    rewrites: int = 3
    deletions: int = 0
    deaths: int = 0
    returns: int = 0


def explore(scenario: Scenario) -> int:
    """Visit every state; return how many there are. Raises Violation, with the steps that lead to it."""
    start = State(
        Stored(0, 0),
        left=scenario.rewrites,
        deletions=scenario.deletions,
        deaths=scenario.deaths,
        returns=scenario.returns,
    )
    return visit_all(start, lambda state: _find_ways(scenario, state), _check, 500_000)


def _check(state: State, is_over: bool) -> None:
    if state.stage == "over":
        version = state.production and state.production.version
        if state.is_deleted and version is not None and not state.may_arrive:
            raise Violation("a deleted object is there again")
        if not state.is_deleted and version != state.newest and state.named is None:
            raise Violation("complete, and an old object is not named")
    elif is_over:
        raise Violation("stuck")


def _find_ways(scenario: Scenario, state: State) -> Iterator[tuple[str, State]]:
    if state.stage != "over":
        yield from _run_application(state)
    yield from _run_command(scenario, state)
    yield from _run_worker(scenario, state)


# The application


def _run_application(state: State) -> Iterator[tuple[str, State]]:
    for version in sorted(set(state.instances)):
        if state.left and not state.is_deleted:
            yield f"an {version} instance writes", _write(state, is_legacy=version == "old")
    if state.deletions and not state.is_deleted:
        gone = state._replace(legacy=None, production=None, is_own=False, is_deleted=True)
        yield "the object is deleted", gone._replace(deletions=0, may_arrive=state.worker == "read")
    if state.stage == "moment" and "old" in state.instances:
        place = state.instances.index("old")
        yield "an instance is switched", state._replace(instances=("new",) * (place + 1) + ("old",) * (1 - place))


def _write(state: State, *, is_legacy: bool) -> State:
    new = Stored(state.newest + 1, state.tick + 1)
    written = state._replace(newest=new.version, tick=new.at, left=state.left - 1)
    if not is_legacy:
        return written._replace(production=new, is_own=False)
    return written._replace(legacy=new, is_overtaken=state.is_overtaken or state.worker == "read")


# The command


def _run_command(scenario: Scenario, state: State) -> Iterator[tuple[str, State]]:
    """A pass has ended where the worker is done; `verify` compares and repairs as a pass does."""
    if state.stage == "passes" and state.worker == "done":
        versions = [stored and stored.version for stored in (state.legacy, state.production)]
        if state.legacy is not None and versions[0] != versions[1] and state.is_overtaken and state.named is None:
            raise Violation("now is the moment, over an object that changed during its copy")
        yield "now is the moment", _begin_pass(state)._replace(stage="moment", moment=state.tick)
    if state.stage in {"passes", "moment"} and state.worker == "done" and state.left:
        yield "another pass", _begin_pass(state)
    if state.stage == "moment" and state.instances == ("new", "new"):
        yield "--finish", _begin_pass(state)._replace(stage="finishing")
    if state.stage == "finishing" and state.worker == "done":
        yield "verify", _begin_pass(state)._replace(stage="verifying")
    if state.stage == "verifying" and state.worker == "done":
        yield "complete", state._replace(stage="over")
    if state.returns and state.moment is not None and state.instances == ("new", "new") and state.worker == "idle":
        yield "--switched-back", _switch_back(scenario, state, state.moment)


def _begin_pass(state: State) -> State:
    return state._replace(worker="idle", times=0, named=None, seen=None)


def _switch_back(scenario: Scenario, state: State, moment: int) -> State:
    """All instances use the legacy bucket again: what it holds is what counts, as docs/application.md says."""
    back = (
        _begin_pass(state)
        ._replace(stage="passes", instances=("old", "old"), moment=None, returns=0)
        ._replace(has_returned=True)
    )
    abandoned = None if scenario.forgets_return else (moment, state.tick)
    return back._replace(newest=state.legacy.version if state.legacy else 0, abandoned=abandoned)


# The worker


def _run_worker(scenario: Scenario, state: State) -> Iterator[tuple[str, State]]:
    if state.deaths and state.worker in {"read", "written"}:
        yield "the worker dies", state._replace(worker="idle", times=0, deaths=state.deaths - 1)
    if state.worker == "idle":
        yield _compare(scenario, state)
    elif state.worker == "read":
        if state.production != state.seen:  # If-Match, If-None-Match
            yield "refused", state._replace(worker="done", named="ObjectChanged", is_pending=False)
            return
        for ticks in (1, LONG) if scenario.is_slow else (1,):
            new = Stored(state.held, state.tick + ticks)
            written = state._replace(production=new, tick=new.at, is_own=True, is_noted=False, worker="written")
            yield "write" if ticks == 1 else "write, long after", written
    elif state.worker == "written":
        is_noted = state.is_own and state.moment is not None
        yield _look_again(scenario, state._replace(is_noted=is_noted, is_pending=False))


def _compare(scenario: Scenario, state: State) -> tuple[str, State]:
    legacy, production = state.legacy, state.production
    if legacy is None or (production is not None and production.version == legacy.version):
        return "nothing to do", state._replace(worker="done", is_overtaken=False)
    precedence = "legacy" if production is None else _find_precedence(scenario, state, legacy, production)
    if precedence == "legacy":
        read = state._replace(worker="read", held=legacy.version, seen=production, is_overtaken=False)
        return "read", read._replace(is_pending=scenario.notes_before and state.moment is not None)
    named = None if precedence == "application" else precedence
    if named and state.has_returned and not state.left and state.stage == "passes":
        raise Violation("a lasting conflict after the return to the legacy bucket")
    return precedence, state._replace(worker="done", named=named)


def _look_again(scenario: Scenario, state: State) -> tuple[str, State]:
    is_current = state.legacy is None or state.legacy.version == state.held
    if is_current or not state.is_own or not scenario.looks_again:
        is_overtaken = state.is_overtaken and not scenario.looks_again
        return "done", state._replace(worker="done", is_overtaken=is_overtaken)
    if state.times < FOLLOWED and state.legacy is not None:
        again = state._replace(worker="read", held=state.legacy.version, seen=state.production, is_overtaken=False)
        is_pending = scenario.notes_before and state.moment is not None
        return "read again", again._replace(times=state.times + 1, is_pending=is_pending)
    return "give up", state._replace(worker="done", named="ObjectRewritten", is_overtaken=False)


def _find_precedence(scenario: Scenario, state: State, legacy: Stored, production: Stored) -> str:
    """Return what counts, or why an entry is named."""
    ahead, bound = legacy.at - production.at, 1
    if scenario.order == "dates":
        ahead, bound = ahead - scenario.skew, 0
    elif _is_known(state, production):
        return "legacy"
    if ahead > bound or (state.is_pending and state.moment is None):
        return "legacy"
    if state.is_pending:
        return "WrittenTogether"
    if ahead < -bound or scenario.order == "dates":
        was_switched = state.moment is not None and production.at > state.moment
        return "application" if was_switched else "ProductionIsNewer"
    is_before = state.moment is None or production.at <= state.moment
    is_ours = is_before or (scenario.ours_until == "confirmed" and state.stage == "moment")
    return "legacy" if is_ours else "WrittenTogether"


def _is_known(state: State, production: Stored) -> bool:
    """Return whether production has a copy that is known by its ETag, or what was written before a return."""
    was_abandoned = state.abandoned is not None and state.abandoned[0] < production.at <= state.abandoned[1]
    return was_abandoned or (state.is_own and state.is_noted)
