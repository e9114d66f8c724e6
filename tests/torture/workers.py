"""The workers of a scenario: as many processes as there are seats, each replaced as soon as it dies."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class Seat:
    """A place for one process at a time."""

    number: int
    log_path: Path
    process: subprocess.Popen[bytes] | None = None
    pids: list[int] = field(default_factory=list)


class WorkerPool:
    """A context manager: its seats are taken at once, and kept taken until `stop` or the end."""

    def __init__(
        self, seats: int, folder: Path, environment: Mapping[str, str], *arguments: str, command: Command | None = None
    ) -> None:
        """`arguments` are of `rowferry worker`; `command` is another way to start it, such as on another host."""
        self._environment = {**os.environ, **environment}
        self._command = command or (lambda _: [*WORKER, *arguments])
        self._seats = [Seat(number, folder / f"worker-{number}.log") for number in range(seats)]
        self._folder = folder
        self._turn = Lock()
        self._ended = Event()
        self._keeper = Thread(target=self._keep, daemon=True)
        self.deaths: list[Death] = []

    def __enter__(self) -> Self:
        for seat in self._seats:
            self._fill(seat)
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill whatever still runs."""
        self._dismiss_keeper()
        for seat in self._seats:
            if seat.process is not None:
                if seat.process.poll() is None:
                    seat.process.kill()
                seat.process.wait()

    @property
    def pids(self) -> list[int]:
        """Return the processes of all seats, as they are now."""
        with self._turn:
            return [seat.process.pid for seat in self._seats if seat.process is not None]

    def kill_one(self, chance: random.Random, *, among: Collection[int] | None = None) -> int | None:
        """Kill a living worker, one of these pids if given; return its pid, None when there is none."""
        with self._turn:
            living = [seat for seat in self._seats if seat.process is not None and seat.process.poll() is None]
            if among is not None:
                living = [seat for seat in living if seat.process is not None and seat.process.pid in among]
            if not living:
                return None
            process = chance.choice(living).process
            assert process is not None
            process.kill()
            return process.pid

    def stop(self) -> list[int]:
        """Tell all workers to finish and return their exit statuses. May be called again."""
        self._dismiss_keeper()
        for seat in self._seats:
            if seat.process is not None and seat.process.poll() is None:
                seat.process.terminate()
        deadline = time.monotonic() + STOP_WITHIN.total_seconds()
        processes = [seat.process for seat in self._seats if seat.process is not None]
        return [process.wait(max(1, deadline - time.monotonic())) for process in processes]

    def log_of(self, number: int) -> str:
        """Return all that the processes of a seat have said."""
        return self._seats[number].log_path.read_text(encoding="utf-8", errors="replace")

    def logs(self) -> str:
        return "".join(self.log_of(seat.number) for seat in self._seats)

    def _fill(self, seat: Seat) -> None:
        with seat.log_path.open("ab") as log:
            seat.process = subprocess.Popen(
                self._command(seat.number),
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        seat.pids.append(seat.process.pid)

    def _keep(self) -> None:
        """Fill each seat anew when its process has ended."""
        while not self._ended.wait(LOOK_EVERY.total_seconds()):
            with self._turn:
                for seat in self._seats:
                    status = seat.process.poll() if seat.process is not None else None
                    if status is not None and not self._ended.is_set():
                        assert seat.process is not None
                        self.deaths.append(Death(seat.number, seat.process.pid, status))
                        self._fill(seat)

    def _dismiss_keeper(self) -> None:
        self._ended.set()
        if self._keeper.is_alive():
            self._keeper.join()
