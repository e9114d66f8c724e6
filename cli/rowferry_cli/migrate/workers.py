"""Workers of a run: those of this host, those that were started elsewhere, and those that were lost."""

import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Self

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.formatting import count_entries
from rowferry.logs import LogFile
from rowferry.reports.state import DEAD_AFTER
from rowferry_worker.service import name_host
from rowferry_worker.supervisor.supervisor import Supervisor

ONE_PROCESS = ("--processes=1", "--log-format=text")
NOT_FOR_THEM = {f"ROWFERRY_WORKER_{name}": "" for name in ("UNTIL_EMPTY", "METRICS_PORT", "QUEUE", "MIGRATION")}
"""Variables that are meant for workers of their own, emptied; they read the others of `rowferry worker`."""
MAX_RESTART_WAIT = timedelta(seconds=2)
"""A person is waiting; and a run is given up after few deaths."""


def of_migration(name: str) -> list[str]:
    """Return the arguments of a worker that serves one migration, and ends if it cannot use it."""
    return ["--migration", name, "--end-when-unusable"]


class LocalWorkers(Supervisor):
    """Some `rowferry worker` processes; a context manager that leaves none behind."""

    def __init__(self, count: int, arguments: Sequence[str], log: LogFile, on_line: Callable[[str], None]) -> None:
        """`arguments` go to each `rowferry worker`; each line that they log goes to the file and to `on_line`."""

        def relay(number: int, line: str) -> None:
            log.write(f"worker {number}: {line}")
            on_line(line.strip())

        command = [sys.executable, "-m", "rowferry_cli", "worker", *ONE_PROCESS, *arguments]
        super().__init__(count, command, relay=relay, max_restart_wait=MAX_RESTART_WAIT, environment=NOT_FOR_THEM)


WAIT = timedelta(minutes=1)
"""How long there may be none before the run is given up: they may be replaced just now."""
LOOK_EVERY = timedelta(seconds=5)


class WorkersElsewhere:
    """Looks whether any worker serves each of some queues; has the members of LocalWorkers that a run needs."""

    def __init__(self, connection: Connection, queues: Sequence[str]) -> None:
        """Look by this connection, which must be in autocommit."""
        self._connection = connection
        self._queues = list(queues)
        self._unserved = list(queues)
        self._seen_at = self._looked_at = time.monotonic()

    dead_pids: frozenset[int] = frozenset()
    """Nothing is known of their processes but their heartbeats."""

    @property
    def last_words(self) -> str:
        """Why the run cannot go on."""
        one = "the queue" if len(self._unserved) == 1 else "the queues"
        return f"no worker serves {one} {', '.join(self._unserved)}: start `rowferry worker` on any host"

    def __enter__(self) -> Self:
        """Begin to wait for them."""
        self._seen_at = self._looked_at = time.monotonic()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Leave them as they are."""

    @property
    def ended_by_mistake(self) -> bool:
        """Whether one of the queues has had none for WAIT."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY.total_seconds():
            self._looked_at = now
            rows = self._connection.execute(statement("list_unserved_queues"), {"queues": self._queues}).fetchall()
            self._unserved = [row["name"] for row in rows]
            self._seen_at = self._seen_at if self._unserved else now
        return now - self._seen_at > WAIT.total_seconds()

    def replace_dead(self) -> int:
        """Return 0: their supervisors replace them."""
        return 0


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
        self._seen: dict[int, OpenAttempt] = {}
        """By batch: those of the last look, and those of dead processes of this host that nobody has followed yet."""
        self.waits: str = ""
        """What is waited for, in words; empty: nothing."""
        self.is_held_up = False
        """Whether all open batches wait for the silence of a dead worker: nothing can move meanwhile."""

    def look(self, dead_pids: Collection[int]) -> Iterator[str]:
        """Yield what happened since the last look, a sentence each; `dead_pids`: processes of this host that ended."""
        found = self._read()
        lost = {each.batch_id: each for each in found if _is_lost(each, dead_pids)}
        passed_on = self._find_passed_on(found, dead_pids)
        new = [*passed_on, *(each for each in lost.values() if self._lost.get(each.batch_id, each) is each)]
        for pid in dict.fromkeys(each.pid for each in new):
            yield _describe_loss([each for each in new if each.pid == pid])
        gone = [*passed_on, *(each for batch_id, each in self._lost.items() if batch_id not in lost)]
        yield from self._describe_takers(gone, found) if gone else ()
        self._lost = {batch_id: self._lost.get(batch_id, each) for batch_id, each in lost.items()}
        self.is_held_up = bool(lost) and len(lost) == len(found)
        self.waits = _describe_wait(list(lost.values())) if lost else ""

    def _find_passed_on(self, found: Collection[OpenAttempt], dead_pids: Collection[int]) -> list[OpenAttempt]:
        """Return the attempts of processes of this host that died, and were followed, all since the last look."""
        now = {each.batch_id: each for each in found}
        dead = [each for each in self._seen.values() if _is_dead(each, dead_pids) and each.batch_id not in self._lost]
        self._seen = {each.batch_id: each for each in dead} | now
        return [each for each in dead if now.get(each.batch_id, each).attempt_id != each.attempt_id]

    def _read(self) -> list[OpenAttempt]:
        with translated_errors():
            rows = self._connection.execute(statement("list_open_attempts"), {"migration": self._migration}).fetchall()
        return [OpenAttempt(**row) for row in rows]

    def _describe_takers(self, gone: Collection[OpenAttempt], found: Collection[OpenAttempt]) -> Iterator[str]:
        """Yield by which process each batch was taken over, as far as that is known; or that its worker is back."""
        takers = {each.batch_id: each for each in found}
        for each in gone:
            taker = takers.get(each.batch_id)
            if taker is not None and taker.attempt_id == each.attempt_id:
                yield f"Worker process {each.pid} responds again, and goes on with batch {each.batch_id}."
            else:
                by = "" if taker is None else f" by process {taker.pid}"
                yield f"Batch {each.batch_id} was taken over{by}: what process {each.pid} had copied is found again."


def _is_lost(attempt: OpenAttempt, dead_pids: Collection[int]) -> bool:
    return attempt.silent_for > OVERDUE or _is_dead(attempt, dead_pids)


def _is_dead(attempt: OpenAttempt, dead_pids: Collection[int]) -> bool:
    return attempt.pid in dead_pids and attempt.host == name_host()


def _describe_loss(attempts: Collection[OpenAttempt]) -> str:
    """Return which process was lost, with which batches; `attempts` are its own, at least one."""
    first, *_ = attempts
    batches = " and ".join(
        f"batch {each.batch_id} ({each.in_hand:,} of {count_entries(each.entry_count)} done)" for each in attempts
    )
    seconds = int(DEAD_AFTER.total_seconds())
    is_here = first.host == name_host()
    where, when = ("", "") if is_here else (f" on {first.host}", f" as soon as it has been silent for {seconds} s")
    return f"Worker process {first.pid}{where} was lost in the middle of {batches}. Another one takes over{when}."


def _describe_wait(lost: Collection[OpenAttempt]) -> str:
    """Return how long the batches of dead workers wait at most."""
    elsewhere = (DEAD_AFTER - each.silent_for for each in lost if each.host != name_host())
    left = max(elsewhere, default=timedelta(0))  # here the kernel says at once that a process has ended
    names = ", ".join(str(each.batch_id) for each in lost)
    which = f"batch {names} waits" if len(lost) == 1 else f"batches {names} wait"
    seconds = max(0, round(left.total_seconds()))
    return f"{which} {seconds} s more for a lost worker" if seconds else f"{which} to be claimed again"
