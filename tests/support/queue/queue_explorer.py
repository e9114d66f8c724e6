"""Every state that a few workers, and whatever befalls them, can bring a queue into: explored breadth first, in memory.

Workers have one slot each. Sessions end without their workers' knowledge, answers are lost, commits hang, PostgreSQL
restarts, operators requeue. How a batch is handled is decided by the worker's own code.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from rowferry.batch import Attempt, Batch
from rowferry_worker.batch.crash_policy import FREE_LOSSES, CrashPolicy, choose_policy, count_strikes
from support.queue.exploring import Violation, visit_all

MAX_ATTEMPTS = 3
Rule = Literal["open", "unlocked", "dead"]
"""Which open attempts of others count as crashes: all of them; those without a ledger's lock; those of the dead."""


class Lot(NamedTuple):
    """A batch: its entries, and the columns that the protocol knows."""

    entries: tuple[int, ...]
    status: str = "INIT"
    requeues: int = 0
    crashes: int = 0


class Try(NamedTuple):
    """A line of the ledger."""

    lot: int
    requeues: int
    worker: int
    verdict: str | None = None


class Worker(NamedTuple):
    """A process with one slot. `life`: dead, but heard of a moment ago, is `quiet` first."""

    id: int
    life: Literal["alive", "quiet", "dead"] = "alive"
    has_lock: bool = True
    """Its ledger's session holds its lock."""
    lot: int | None = None
    tried: int | None = None
    """Its line of the ledger, once its attempt has started; it is a place in `State.ledger`."""
    history: tuple[int, int, int] = (1, 0, 0)
    """Number, crashes and losses, as it was told when it began."""
    session: Literal["open", "ended", "committing"] = "open"
    unflushed: bool = False
    """It has started an attempt without learning of it."""


class State(NamedTuple):
    """The database and the workers. `left`: how often each mishap may still come."""

    lots: tuple[Lot, ...]
    legacy: frozenset[int]
    ledger: tuple[Try, ...]
    workers: tuple[Worker, ...]
    left: tuple[tuple[str, int], ...]
    deaths: int = 0


@dataclass(frozen=True)
class Scenario:
    """What there is at the beginning, and what may befall it how often."""

    lots: tuple[int, ...] = (1,)
    """The entries of each batch."""
    workers: int = 2
    mishaps: dict[str, int] = field(default_factory=dict[str, int])
    """end_session, die, restart, lose_answer, hang, requeue."""
    poison: Literal["kills", "ends_backend"] | None = None
    """What the first entry does to the worker that updates it."""
    rule: Rule = "dead"
    most_deaths: int = 8

    def begin(self) -> State:
        first, lots = 0, []
        for size in self.lots:
            lots.append(Lot(tuple(range(first, first + size))))
            first += size
        workers = tuple(Worker(number) for number in range(self.workers))
        return State(tuple(lots), frozenset(range(first)), (), workers, tuple(sorted(self.mishaps.items())))


def explore(scenario: Scenario, most_states: int = 200_000) -> int:
    """Visit every state; return how many there are. Raises Violation, with the steps that lead to it."""
    return visit_all(
        scenario.begin(),
        lambda state: _steps(scenario, state),
        lambda state, is_over: check(scenario, state, is_over=is_over),
        most_states,
    )


def check(scenario: Scenario, state: State, *, is_over: bool) -> None:
    """Raise Violation where the state breaks a promise."""
    held = [worker.lot for worker in state.workers if worker.lot is not None and worker.session != "ended"]
    if len(held) != len(set(held)) or any(w.lot is not None and w.life != "alive" for w in state.workers):
        raise Violation("a lock without a holder, or with two")
    waiting = Counter(entry for lot in state.lots if lot.status != "DONE" for entry in lot.entries)
    if state.legacy - waiting.keys():
        raise Violation("an entry is lost")
    if any(count > 1 for entry, count in waiting.items() if entry in state.legacy):
        raise Violation("an entry is in two batches")
    if state.deaths > scenario.most_deaths:
        raise Violation("poison kills without end")
    if is_over:
        poisoned = {0} if scenario.poison else set()
        if any(lot.status == "INIT" for lot in state.lots) or state.legacy - poisoned:
            raise Violation("stuck")


def _steps(scenario: Scenario, state: State) -> Iterator[tuple[str, State]]:
    """Yield what may happen next, by name."""
    for place, worker in enumerate(state.workers):
        for name, step in _steps_of(worker).items():
            for following in step(scenario, state, place):
                yield f"{name} {worker.id}", following
    if (restarted := _spend(state, "restart")) is not None:
        cut = tuple(w._replace(has_lock=False, session="ended" if w.lot is not None else "open") for w in state.workers)
        yield "restart", restarted._replace(workers=cut)
    if (asked := _spend(state, "requeue")) is not None:
        for number, lot in enumerate(state.lots):
            if lot.status != "INIT":
                again = lot._replace(status="INIT", requeues=lot.requeues + 1, crashes=0)
                rows = _not_elsewhere(state, number, lot)
                yield f"requeue {number}", _put_lot(asked, number, again)._replace(legacy=state.legacy | rows)


def _not_elsewhere(state: State, number: int, lot: Lot) -> set[int]:
    """Return the rows of a batch that may have been made legacy again: those that no other batch waits for."""
    others = {e for n, other in enumerate(state.lots) if n != number and other.status != "DONE" for e in other.entries}
    return set(lot.entries) - others


Step = Callable[[Scenario, State, int], Iterator[State]]


def _steps_of(worker: Worker) -> dict[str, Step]:
    """Return what this worker may do, or what may befall it."""
    if worker.life != "alive":
        return {"fall silent": _fall_silent} if worker.life == "quiet" else {"replace": _replace}
    always: dict[str, Step] = {"die": _die} | ({} if worker.has_lock else {"reconnect": _reconnect})
    if worker.unflushed:
        own: dict[str, Step] = {"settle": _settle}
    elif worker.lot is None:
        own = {"claim": _claim}
    elif worker.session == "committing":
        own = {"commit late": _commit, "lose commit": _lose_commit}
    elif worker.tried is None:
        own = {"begin": _begin, "lose answer": _lose_answer, "end session": _end_session}
    elif worker.session == "ended":
        own = {"notice": _notice}
    else:
        own = {"run": _run, "hang": _hang, "end session": _end_session}
    return always | own


def _fall_silent(_: Scenario, state: State, place: int) -> Iterator[State]:
    """Count it as dead: it was silent for long enough, or its kernel has said at once that it has ended."""
    yield _put(state, place, life="dead")


def _replace(_: Scenario, state: State, place: int) -> Iterator[State]:
    new = Worker(max(w.id for w in state.workers) + 1)
    yield state._replace(workers=(*state.workers[:place], new, *state.workers[place + 1 :]))


def _die(_: Scenario, state: State, place: int) -> Iterator[State]:
    if (struck := _spend(state, "die")) is not None:
        yield _kill(struck, place)


def _reconnect(_: Scenario, state: State, place: int) -> Iterator[State]:
    yield _put(state, place, has_lock=True)


def _end_session(_: Scenario, state: State, place: int) -> Iterator[State]:
    if state.workers[place].session == "open" and (struck := _spend(state, "end_session")) is not None:
        yield _put(struck, place, session="ended")


def _claim(_: Scenario, state: State, place: int) -> Iterator[State]:
    held = {w.lot for w in state.workers if w.session != "ended"}
    for number, lot in enumerate(state.lots):  # any: which comes first is a matter of waits
        if lot.status == "INIT" and number not in held:
            yield _put(state, place, lot=number, session="open")


def _begin(scenario: Scenario, state: State, place: int) -> Iterator[State]:
    worker = state.workers[place]
    attempt, is_clear = look_back(scenario, state, worker)
    if not is_clear:
        yield _let_go(state, place)  # put back until it is
        return
    started = _record(state, worker)
    history = (attempt.number, attempt.crashes, attempt.losses)
    yield _put(started, place, tried=len(started.ledger) - 1, history=history)


def _lose_answer(_: Scenario, state: State, place: int) -> Iterator[State]:
    if (struck := _spend(state, "lose_answer")) is not None:
        yield _put(_let_go(_record(struck, state.workers[place]), place), place, unflushed=True)


def _settle(_: Scenario, state: State, place: int) -> Iterator[State]:
    id_ = state.workers[place].id
    closed = tuple(t._replace(verdict="LOST") if t.worker == id_ and not t.verdict else t for t in state.ledger)
    yield _put(state._replace(ledger=closed), place, unflushed=False)


def _notice(_: Scenario, state: State, place: int) -> Iterator[State]:
    yield _let_go(_close(state, state.workers[place], "LOST"), place)


def _hang(_: Scenario, state: State, place: int) -> Iterator[State]:
    if (struck := _spend(state, "hang")) is not None:
        yield _put(struck, place, session="committing")


def _lose_commit(_: Scenario, state: State, place: int) -> Iterator[State]:
    yield _put(state, place, session="ended")


def _run(scenario: Scenario, state: State, place: int) -> Iterator[State]:
    worker = state.workers[place]
    lot = state.lots[worker.lot or 0]
    runs = _treatment(state, worker) in {CrashPolicy.RUN, CrashPolicy.RUN_SLOWLY}
    if runs and scenario.poison and 0 in lot.entries and 0 in state.legacy:
        struck = state._replace(deaths=state.deaths + 1)
        yield _kill(struck, place) if scenario.poison == "kills" else _put(struck, place, session="ended")
        return
    yield from _commit(scenario, state, place)


def _commit(_: Scenario, state: State, place: int) -> Iterator[State]:
    worker = state.workers[place]
    number = worker.lot or 0
    lot, treatment = state.lots[number], _treatment(state, worker)
    done = _let_go(_close(state, worker, "DONE"), place)
    if treatment is CrashPolicy.FAIL:
        yield _put_lot(done, number, lot._replace(status="ERROR"))
        return
    halves: tuple[Lot, ...] = ()
    left = tuple(entry for entry in lot.entries if entry in state.legacy)
    if treatment is CrashPolicy.BISECT and len(left) > 1:
        strikes = lot.crashes + count_strikes(_batch(state, number), Attempt(0, *worker.history))
        middle = (len(left) + 1) // 2
        halves = tuple(Lot(part, crashes=strikes) for part in (left[:middle], left[middle:]))
    moved = frozenset() if halves else frozenset(lot.entries)
    finished = _put_lot(done, number, lot._replace(status="DONE"))
    yield finished._replace(lots=(*finished.lots, *halves), legacy=state.legacy - moved)


def _treatment(state: State, worker: Worker) -> CrashPolicy:
    batch, attempt = _batch(state, worker.lot or 0), Attempt(0, *worker.history)
    treatment = choose_policy(batch, attempt)
    if treatment is CrashPolicy.BISECT and not state.deaths and attempt.losses <= FREE_LOSSES and not _has_died(state):
        raise Violation("a batch is halved, and no worker died")
    return treatment


def _has_died(state: State) -> bool:
    return max(w.id for w in state.workers) >= len(state.workers) or any(w.life != "alive" for w in state.workers)


def _batch(state: State, number: int) -> Batch:
    lot = state.lots[number]
    return Batch(number, 1, 1, "migrate", {}, len(lot.entries), MAX_ATTEMPTS, lot.requeues, lot.crashes)


def look_back(scenario: Scenario, state: State, worker: Worker) -> tuple[Attempt, bool]:
    """Return the attempt that would begin now, and whether it is clear who has died; as begin_attempts.sql does."""
    number = worker.lot or 0
    past = [t for t in state.ledger if (t.lot, t.requeues) == (number, state.lots[number].requeues)]
    others = [t.worker for t in past if t.verdict is None and (t.worker != worker.id or scenario.rule == "open")]
    living = {w.id: w for w in state.workers if w.life != "dead"}  # the dead and replaced are known to be dead
    crashed = [id_ for id_ in others if _is_crash(scenario.rule, living.get(id_))]
    if any(id_ in living and living[id_].life == "alive" for id_ in crashed):
        raise Violation("a living worker is counted as crashed")
    unclear = scenario.rule == "dead" and any(id_ in living and not _has_lock(living[id_]) for id_ in others)
    counted = sum(t.verdict in {"RETRY", "ERROR", "DONE"} for t in past)
    losses = sum(t.verdict == "LOST" for t in past)
    return Attempt(0, 1 + counted + len(crashed), len(crashed), losses), not unclear


def _is_crash(rule: Rule, worker: Worker | None) -> bool:
    if rule == "open" or worker is None:
        return True
    return rule == "unlocked" and not _has_lock(worker)


def _has_lock(worker: Worker) -> bool:
    return worker.has_lock and worker.life == "alive"


def _record(state: State, worker: Worker) -> State:
    number = worker.lot or 0
    return state._replace(ledger=(*state.ledger, Try(number, state.lots[number].requeues, worker.id)))


def _close(state: State, worker: Worker, verdict: str) -> State:
    """Give the worker's attempt its verdict, unless it has one."""
    place = worker.tried
    if place is None or state.ledger[place].verdict:
        return state
    closed = state.ledger[place]._replace(verdict=verdict)
    return state._replace(ledger=(*state.ledger[:place], closed, *state.ledger[place + 1 :]))


def _kill(state: State, place: int) -> State:
    return _put(_let_go(state, place), place, life="quiet", has_lock=False, unflushed=False)


def _let_go(state: State, place: int) -> State:
    return _put(state, place, lot=None, tried=None, history=(1, 0, 0), session="open")


def _put(state: State, place: int, **changes: object) -> State:
    changed = state.workers[place]._replace(**changes)
    return state._replace(workers=(*state.workers[:place], changed, *state.workers[place + 1 :]))


def _put_lot(state: State, number: int, lot: Lot) -> State:
    return state._replace(lots=(*state.lots[:number], lot, *state.lots[number + 1 :]))


def _spend(state: State, mishap: str) -> State | None:
    """Return the state with one mishap of the kind less to come; None where none is left."""
    left = dict(state.left)
    if not left.get(mishap):
        return None
    left[mishap] -= 1
    return state._replace(left=tuple(sorted(left.items())))
