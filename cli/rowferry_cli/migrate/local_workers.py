"""Worker processes on this host, started for one command and ended with it; they log to one file."""

import sys
from collections.abc import Callable, Sequence
from datetime import timedelta

from rowferry.logs import LogFile
from rowferry_worker.supervisor import Supervisor

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
