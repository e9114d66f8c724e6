"""Workers that were lost during a run: with which batches, how long these wait, and who goes on with them."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.formatting import count_entries
from rowferry_cli.status.state import DEAD_AFTER
from rowferry_cli.status.unusable import find_unusable
from rowferry_worker.monitoring.kernel import tells_ends
from rowferry_worker.service import name_host

OVERDUE = timedelta(seconds=7)
"""A worker has missed a heartbeat after this long without a sign of life; they come every 5 s."""


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt without a verdict, of a worker that lives or has died."""

    attempt_id: int
    batch_id: int
    host: str
    pid: int
    entry_count: int
    in_hand: int
    silent_for: timedelta


class LostWorkers:
    """Looks at the open attempts of one migration, and words what became of those whose workers have died."""

    def __init__(self, connection: Connection, migration: str) -> None:
        self._connection = connection
        self._migration = migration
        self._lost: dict[int, OpenAttempt] = {}
        """By batch: those that nobody has taken over yet."""
        self._seen: tuple[list[OpenAttempt], list[OpenAttempt]] = ([], [])
        """What the last two looks have found: a process may be known to have died a look after it was followed."""
        self._told: set[int] = set()
        """The attempts whose loss was told, ..."""
        self._followed: set[int] = set()
        """... and those of which it was told who goes on."""
        self._causes: set[str] = set()
        """Why processes wait for a connection, as far as it was told."""
        self.waits: str = ""
        """What is waited for, in words; empty: nothing."""

    def look(self, dead_pids: Collection[int]) -> Iterator[str]:
        """Yield what happened since the last look, a sentence each; `dead_pids`: processes of this host that ended."""
        found = self._read()
        lost = {each.batch_id: each for each in found if _is_lost(each, dead_pids)}
        passed_on = self._find_passed_on(found, dead_pids)
        new = [each for each in (*passed_on, *lost.values()) if each.attempt_id not in self._told]
        self._told.update(each.attempt_id for each in new)
        for pid in dict.fromkeys(each.pid for each in new):
            yield _describe_loss([each for each in new if each.pid == pid], dead_pids)
        gone = [*passed_on, *(each for batch_id, each in self._lost.items() if batch_id not in lost)]
        yield from self._describe_takers(gone, found) if gone else ()
        self._lost = {batch_id: self._lost.get(batch_id, each) for batch_id, each in lost.items()}
        self.waits = _describe_wait(list(lost.values()), dead_pids) if lost else ""
        for idle in find_unusable(self._connection, self._migration):
            if idle.migration is None and idle.error not in self._causes:
                self._causes.add(idle.error)
                yield str(idle)

    def _find_passed_on(self, found: list[OpenAttempt], dead_pids: Collection[int]) -> list[OpenAttempt]:
        """Return the attempts of processes of this host that have died, and were followed within the last two looks."""
        now = {each.batch_id: each.attempt_id for each in found}
        before = {each.attempt_id: each for seen in self._seen for each in seen}
        self._seen = (self._seen[1], found)
        return [
            each
            for each in before.values()
            if _is_dead(each, dead_pids)
            and now.get(each.batch_id, each.attempt_id) != each.attempt_id
            and each.attempt_id not in self._told
        ]

    def _read(self) -> list[OpenAttempt]:
        with translated_errors():
            rows = self._connection.execute(statement("list_open_attempts"), {"migration": self._migration}).fetchall()
        return [OpenAttempt(**row) for row in rows]

    def _describe_takers(self, gone: Collection[OpenAttempt], found: Collection[OpenAttempt]) -> Iterator[str]:
        """Yield by which process each batch was taken over, as far as that is known; or that its worker is back."""
        takers = {each.batch_id: each for each in found}
        for each in gone:
            taker = takers.get(each.batch_id)
            if each.attempt_id in self._followed:
                continue
            if taker is not None and taker.attempt_id == each.attempt_id:
                self._told.discard(each.attempt_id)
                yield f"Worker process {each.pid} responds again, and goes on with batch {each.batch_id}."
            else:
                self._followed.add(each.attempt_id)
                by = "" if taker is None else f" by process {taker.pid}"
                yield f"Batch {each.batch_id} was taken over{by}: what process {each.pid} had copied is found again."


def _is_lost(attempt: OpenAttempt, dead_pids: Collection[int]) -> bool:
    return attempt.silent_for > OVERDUE or _is_dead(attempt, dead_pids)


def _is_dead(attempt: OpenAttempt, dead_pids: Collection[int]) -> bool:
    return attempt.pid in dead_pids and attempt.host == name_host()


def _describe_loss(attempts: Collection[OpenAttempt], dead_pids: Collection[int]) -> str:
    """Return which process was lost, with which batches; `attempts` are its own, at least one."""
    first, *_ = attempts
    batches = " and ".join(
        f"batch {each.batch_id} ({each.in_hand:,} of {count_entries(each.entry_count)} done)" for each in attempts
    )
    seconds = int(DEAD_AFTER.total_seconds())
    where = "" if first.host == name_host() else f" on {first.host}"
    when = "" if _is_known_to_all(first, dead_pids) else f" as soon as it has been silent for {seconds} s"
    return f"Worker process {first.pid}{where} was lost in the middle of {batches}. Another one takes over{when}."


def _describe_wait(lost: Collection[OpenAttempt], dead_pids: Collection[int]) -> str:
    """Return how long the batches of dead workers wait at most."""
    silent = (DEAD_AFTER - each.silent_for for each in lost if not _is_known_to_all(each, dead_pids))
    left = max(silent, default=timedelta(0))
    names = ", ".join(str(each.batch_id) for each in lost)
    which = f"batch {names} waits" if len(lost) == 1 else f"batches {names} wait"
    seconds = max(0, round(left.total_seconds()))
    return f"{which} {seconds} s more for a lost worker" if seconds else f"{which} to be claimed again"


def _is_known_to_all(attempt: OpenAttempt, dead_pids: Collection[int]) -> bool:
    """Return whether the workers of this host need not wait for a silent one: the kernel says that it has ended."""
    return _is_dead(attempt, dead_pids) and tells_ends()
