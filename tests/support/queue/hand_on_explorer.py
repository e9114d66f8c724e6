"""Every way in which the entries of a batch may be settled and handed on to the next queue, explored in memory.

One batch, whose halves it may become, and workers one after the other, which may die at any moment. Each attempt
settles some of what it reads. Operators requeue what has ended.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Literal, NamedTuple

from support.queue.exploring import Violation, visit_all

Moment = Literal["verdict", "before", "after"]
"""When entries are handed on: in the transaction of the verdict, in one of their own before it, or after it."""
Entries = frozenset[int]
NONE: Entries = frozenset()


class Lot(NamedTuple):
    """A batch: its entries, and those that are left to settle."""

    entries: Entries
    left: Entries
    status: Literal["INIT", "DONE", "ERROR"] = "INIT"


class Attempt(NamedTuple):
    """What the worker holds. `settled`: None until the objects are done with."""

    lot: int
    read: Entries
    settled: Entries | None = None
    has_handed_on: bool = False
    has_committed: bool = False


class State(NamedTuple):
    """The batches, the worker, and how often each entry was settled and handed on. The rest may still come so often."""

    lots: tuple[Lot, ...]
    handed_on: tuple[int, ...]
    settled: Entries = NONE
    attempt: Attempt | None = None
    deaths: int = 2
    splits: int = 1
    requeues: int = 1


@dataclass(frozen=True)
class Scenario:
    """How many entries there are, and the rules that hold."""

    entries: int = 2
    moment: Moment = "verdict"
    tracks: bool = True
    """Whether a batch knows what its attempts have left, where its entries do not tell."""


def explore(scenario: Scenario) -> int:
    """Visit every state; return how many there are. Raises Violation, with the steps that lead to it."""
    entries = frozenset(range(scenario.entries))
    start = State((Lot(entries, entries),), (0,) * scenario.entries)
    return visit_all(start, lambda state: _find_ways(scenario, state), _check)


def _check(state: State, is_over: bool) -> None:
    if max(state.handed_on) > 1:
        raise Violation("an entry is handed on twice")
    if is_over and any(not state.handed_on[entry] for entry in state.settled):
        raise Violation("a settled entry is not handed on")
    if is_over and any(lot.status == "INIT" for lot in state.lots):
        raise Violation("stuck")


def _find_ways(scenario: Scenario, state: State) -> Iterator[tuple[str, State]]:
    attempt = state.attempt
    if attempt is None:
        for number, lot in enumerate(state.lots):
            yield from _wait(scenario, state, number, lot)
        return
    if state.deaths:
        yield "the worker dies", state._replace(attempt=None, deaths=state.deaths - 1)
    if attempt.settled is None:
        for settled in _subsets(attempt.read):
            yield f"settle {sorted(settled)}", state._replace(attempt=attempt._replace(settled=settled))
    elif scenario.moment == "before" and not attempt.has_handed_on:
        yield "hand on", _hand_on(state, attempt)._replace(attempt=attempt._replace(has_handed_on=True))
    elif not attempt.has_committed:
        for status in ("DONE",) if attempt.settled == attempt.read else ("INIT", "ERROR"):
            yield f"commit {status}", _commit(scenario, state, attempt, status)
    else:
        yield "hand on", _hand_on(state, attempt)._replace(attempt=None)


def _wait(scenario: Scenario, state: State, number: int, lot: Lot) -> Iterator[tuple[str, State]]:
    """Yield what may happen to a batch that no worker holds."""
    if lot.status == "INIT":
        yield f"claim {number}", state._replace(attempt=Attempt(number, _find_read(scenario, lot)))
        halves = sorted(_find_read(scenario, lot))
        if state.splits and len(halves) > 1:
            middle = len(halves) // 2
            new = tuple(Lot(frozenset(part), frozenset(part)) for part in (halves[:middle], halves[middle:]))
            split = _put(state, number, lot._replace(status="DONE", left=NONE, entries=NONE))
            yield f"split {number}", split._replace(lots=(*split.lots, *new), splits=0)
    elif state.requeues:
        again = _put(state, number, lot._replace(status="INIT"))
        yield f"requeue {number}", again._replace(requeues=state.requeues - 1)


def _find_read(scenario: Scenario, lot: Lot) -> Entries:
    return lot.left if scenario.tracks else lot.entries


def _subsets(entries: Entries) -> Iterator[Entries]:
    sizes = range(len(entries) + 1)
    yield from map(frozenset, chain.from_iterable(combinations(sorted(entries), size) for size in sizes))


def _commit(scenario: Scenario, state: State, attempt: Attempt, status: Literal["INIT", "DONE", "ERROR"]) -> State:
    settled, lot = attempt.settled or NONE, state.lots[attempt.lot]
    done = _put(state, attempt.lot, lot._replace(status=status, left=lot.left - settled))
    done = done._replace(settled=done.settled | settled)
    if scenario.moment == "after":
        return done._replace(attempt=attempt._replace(has_committed=True))
    return (_hand_on(done, attempt) if scenario.moment == "verdict" else done)._replace(attempt=None)


def _hand_on(state: State, attempt: Attempt) -> State:
    settled = attempt.settled or NONE
    return state._replace(handed_on=tuple(n + (entry in settled) for entry, n in enumerate(state.handed_on)))


def _put(state: State, number: int, lot: Lot) -> State:
    return state._replace(lots=(*state.lots[:number], lot, *state.lots[number + 1 :]))
