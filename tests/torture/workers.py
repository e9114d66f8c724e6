"""The workers of a scenario: as many processes as there are seats, each replaced as soon as it dies."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Self

STOP_WITHIN = timedelta(seconds=90)
LOOK_EVERY = timedelta(seconds=0.02)
WORKER = (sys.executable, "-m", "rowferry_cli", "worker", "--processes=1", "--log-format=json")

Command = Callable[[int], Sequence[str]]
"""What starts the worker of a seat, counted from 0."""


@dataclass(frozen=True, slots=True)
class Death:
    """A worker process that ended before it was told to."""

    seat: int
    pid: int
    status: int


class WorkerPool:
    """A context manager: its seats are taken at once, and kept taken until `stop` or the end."""

    def __init__(
        self, seats: int, folder: Path, environment: Mapping[str, str], *arguments: str, command: Command | None = None
    ) -> None:
        """`arguments` are of `rowferry worker`; `command` is another way to start it, such as on another host."""
        self._environment = {**os.environ, **environment}
        self._command = command or (lambda _: [*WORKER, *arguments])
        self._logs = [folder / f"worker-{number}.log" for number in range(seats)]
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        """That of each seat."""
        self._turn = Lock()
        self._ended = Event()
        self._keeper = Thread(target=self._keep, daemon=True)
        self.deaths: list[Death] = []

    def __enter__(self) -> Self:
        self._processes = [self._start(seat) for seat in range(len(self._logs))]
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill whatever still runs."""
        self._dismiss_keeper()
        for process in self._processes:
            process.kill()
            process.wait()

    @property
    def pids(self) -> list[int]:
        """Return the processes of all seats, as they are now."""
        with self._turn:
            return [process.pid for process in self._processes]

    def kill_one(self, chance: random.Random, *, among: Collection[int] | None = None) -> int | None:
        """Kill a living worker, one of these pids if given; return its pid, None when there is none."""
        with self._turn:
            living = [process for process in self._processes if process.poll() is None]
            chosen = [process for process in living if among is None or process.pid in among]
            if not chosen:
                return None
            process = chance.choice(chosen)
            process.kill()
            return process.pid

    def stop(self) -> list[int]:
        """Tell all workers to finish and return their exit statuses. May be called again."""
        self._dismiss_keeper()
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + STOP_WITHIN.total_seconds()
        return [process.wait(max(1, deadline - time.monotonic())) for process in self._processes]

    def log_of(self, seat: int) -> str:
        """Return all that the processes of a seat have said."""
        return self._logs[seat].read_text(encoding="utf-8", errors="replace")

    def logs(self) -> str:
        return "".join(map(self.log_of, range(len(self._logs))))

    def _start(self, seat: int) -> subprocess.Popen[bytes]:
        with self._logs[seat].open("ab") as log:
            return subprocess.Popen(
                self._command(seat),
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _keep(self) -> None:
        """Fill each seat anew when its process has ended."""
        while not self._ended.wait(LOOK_EVERY.total_seconds()):
            with self._turn:
                for seat, process in enumerate(self._processes):
                    if process.poll() is not None and not self._ended.is_set():
                        self.deaths.append(Death(seat, process.pid, process.returncode))
                        self._processes[seat] = self._start(seat)

    def _dismiss_keeper(self) -> None:
        self._ended.set()
        if self._keeper.is_alive():
            self._keeper.join()
