"""Every order in which an application may rewrite an object while its row moves and is verified, explored in memory.

One object, one worker that may die, and instances of an application that write where the row said, a moment ago, that
the object is. Versions are numbers; a tick of the one true clock lies between any two writes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from support.queue.exploring import Violation, visit_all

FOLLOWED = 1
"""How often one attempt copies again what is rewritten again and again."""
Side = Literal["legacy", "production"]
Look = Literal["none", "before", "after"]
"""When a worker looks at the legacy object again: never, before its copy is written, after that."""
Order = Literal["bounded", "dates"]
"""How verify tells which of two writes was the last: by clocks of which it knows how far they may be off, with its own
copies known by their ETags; or by the dates that the two servers tell."""


class Stored(NamedTuple):
    """What stands at a key: which version, and when it was written."""

    version: int
    at: int


class State(NamedTuple):
    """Both buckets, the row, the worker and the application. `left`: how often it may still write."""

    legacy: Stored
    production: Stored | None = None
    is_own: bool = False
    """Whether production is as the last write of a worker left it."""
    is_noted: bool = False
    """Whether that write is remembered, by its ETag."""
    row: Side = "legacy"
    worker: Literal["idle", "read", "checked", "written", "looked", "moved", "verifying", "repaired"] = "idle"
    held: int = 0
    """The version that the worker has read."""
    seen: tuple[Stored, Stored] | None = None
    """What verify has compared."""
    is_calm: bool = False
    """Whether the application rested when verify began."""
    is_overtaken: bool = False
    """Whether the object was rewritten between the reading of a copy and its writing."""
    times: int = 0
    named: str | None = None
    intents: tuple[Side | None, ...] = (None,)
    """Where each instance is about to write; None: it does not know yet."""
    newest: int = 0
    tick: int = 0
    left: int = 2
    deaths: int = 1


@dataclass(frozen=True)
class Scenario:
    """The rules that hold, and by how many ticks the clock of production is ahead."""

    look: Look = "after"
    order: Order = "bounded"
    skew: int = 0
    rewrites: int = 3
    instances: int = 1


def explore(scenario: Scenario) -> int:
    """Visit every state; return how many there are. Raises Violation, with the steps that lead to it."""
    start = State(Stored(0, 0), left=scenario.rewrites, intents=(None,) * scenario.instances)
    return visit_all(start, lambda state: _find_ways(scenario, state), _check)


def _check(state: State, is_over: bool) -> None:
    if is_over and state.row == "legacy" and not state.named:
        raise Violation("stuck")


def _find_ways(scenario: Scenario, state: State) -> Iterator[tuple[str, State]]:
    for place, intent in enumerate(state.intents):
        if intent is not None:
            yield f"application {place} writes to {intent}", _write(state, place, intent)
        elif state.left:
            yield f"application {place} reads the row", _intend(state, place, state.row)._replace(left=state.left - 1)
    if state.worker in {"moved", "verifying", "repaired"}:
        yield from _verify(scenario, state)
    else:
        yield from _migrate(scenario, state)
        if state.deaths and state.worker != "idle":
            yield "the worker dies", state._replace(worker="idle", times=0, deaths=state.deaths - 1)


def _intend(state: State, place: int, intent: Side | None) -> State:
    return state._replace(intents=(*state.intents[:place], intent, *state.intents[place + 1 :]))


def _write(state: State, place: int, side: Side) -> State:
    new = Stored(state.newest + 1, state.tick + 1)
    written = _intend(state, place, None)._replace(newest=new.version, tick=new.at)
    if side == "production":
        return written._replace(production=new, is_own=False)
    return written._replace(legacy=new, is_overtaken=state.is_overtaken or state.worker in {"read", "checked"})


def _copy(state: State, version: int) -> State:
    return state._replace(production=Stored(version, state.tick + 1), tick=state.tick + 1, is_own=True, is_noted=False)


def _migrate(scenario: Scenario, state: State) -> Iterator[tuple[str, State]]:
    match state.worker:
        case "idle" if state.named is None:
            yield "read", _read(state)
        case "read":
            if scenario.look == "before" and state.legacy.version != state.held:
                yield "look, read again", _read(state)
            elif scenario.look == "before":
                yield "look", state._replace(worker="checked")
            else:
                yield "write", _land(state)
        case "checked":
            yield "write", _land(state)
        case "written":
            yield _look_again(scenario, state)
        case "looked":
            if state.is_overtaken and state.production is not None and state.production.version != state.legacy.version:
                raise Violation("a row moves whose object was rewritten during its copy")
            yield "move the row", state._replace(row="production", worker="moved")
        case _:
            pass


def _read(state: State) -> State:
    return state._replace(worker="read", held=state.legacy.version, is_overtaken=False)


def _land(state: State) -> State:
    return _copy(state, state.held)._replace(worker="written")


def _look_again(scenario: Scenario, state: State) -> tuple[str, State]:
    if scenario.look != "after":
        return "look not again", state._replace(worker="looked")
    if state.legacy.version == state.held:
        return "look again", state._replace(worker="looked", is_overtaken=False)
    if state.times < FOLLOWED:
        return "look again, read again", _read(state)._replace(times=state.times + 1)
    return "give up", state._replace(worker="idle", named="ObjectRewritten")


def _verify(scenario: Scenario, state: State) -> Iterator[tuple[str, State]]:
    """Compare, repair, and look again after that; once the application rests, the newest must be there, or named."""
    production = state.production
    assert production is not None
    if state.worker == "moved":
        is_calm = not state.left and not any(state.intents)
        yield "verify", state._replace(worker="verifying", seen=(state.legacy, production), named=None, is_calm=is_calm)
        return
    seen, ended = state.seen, state._replace(worker="moved", seen=None, held=0)
    assert seen is not None
    if state.worker == "repaired":
        is_current = state.legacy.version == state.held
        yield "look again", _judge(ended if is_current else ended._replace(named="ObjectRewritten", is_noted=True))
    elif seen[0].version == seen[1].version:
        yield "equal", _judge(ended)
    elif (precedence := _find_precedence(scenario, state, seen)) == "legacy":
        if production != seen[1]:  # If-Match
            yield "changed", _judge(ended._replace(named="ObjectChanged"))
        else:
            version = state.legacy.version
            yield "repair", _copy(state, version)._replace(worker="repaired", held=version)
    else:
        yield precedence, _judge(ended._replace(named=precedence))


def _find_precedence(scenario: Scenario, state: State, seen: tuple[Stored, Stored]) -> str:
    legacy, production = seen
    if scenario.order == "dates":
        return "legacy" if legacy.at > production.at + scenario.skew else "ProductionIsNewer"
    if state.is_own and state.is_noted and production == state.production:
        return "legacy"
    ahead = legacy.at - production.at
    return "legacy" if ahead > 1 else "ProductionIsNewer" if ahead < -1 else "WrittenTogether"


def _judge(state: State) -> State:
    """Raise Violation where an old object is not named, or named the newest, although the application has rested."""
    if state.is_calm and state.production is not None and state.production.version != state.newest:
        if state.named is None:
            raise Violation("an old object is not named")
        if state.named == "ProductionIsNewer":
            raise Violation("an old object is called the newest")
    return state
