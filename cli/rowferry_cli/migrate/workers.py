"""Workers of a run: those of this host, and those that were started elsewhere."""

import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

from rowferry.db.connection import Connection
from rowferry.db.statements import statement
from rowferry_cli.log_file import LogFile
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
