"""Worker processes on this host, started for one command and ended with it; what they log goes to one file."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from threading import Thread
from typing import IO, Self

from rowferry.interrupts import hold_interrupts
from rowferry.logs import LogFile


def of_migration(name: str) -> list[str]:
    """Return the arguments of a worker that is there for one migration, and ends where it cannot work on it."""
    return ["--migration", name, "--end-when-unusable"]


class LocalWorkers:
    """Some `rowferry worker` processes; a context manager that leaves none behind."""

    def __init__(self, count: int, arguments: Sequence[str], log: LogFile, on_line: Callable[[str], None]) -> None:
        """`arguments` go to each `rowferry worker`; each line they log goes to the file and to `on_line`."""
        self._count = count
        self._arguments = arguments
        self._log = log
        self._on_line = on_line
        self._processes: list[subprocess.Popen[str]] = []
        self._relays: dict[int, Thread] = {}
        """By process id, as are the lines."""
        self._last_lines: dict[int, str] = {}
        self._started = 0

    def __enter__(self) -> Self:
        """Start them; none is left behind where that is broken off."""
        try:
            for number in range(1, self._count + 1):
                self._start(number)
        except BaseException:
            self.stop()
            raise
        self._started = self._count
        return self

    def __exit__(self, *_: object) -> None:
        """Stop whoever still runs."""
        self.stop()

    @property
    def pids(self) -> list[int]:
        """Return the process ids of those that live."""
        return [process.pid for process in self._processes if process.poll() is None]

    @property
    def last_words(self) -> str:
        """Return the last line of those that have ended by mistake, of any of them; empty where none has."""
        ended = [process.pid for process in self._processes if process.poll() == 2]
        for pid in ended:
            self._relays[pid].join(5)  # it may still be reading
        return next((self._last_lines[pid] for pid in ended if pid in self._last_lines), "")

    @property
    def ended_by_mistake(self) -> bool:
        """Return whether one ended because its settings cannot work: another would end the same way."""
        return any(process.poll() == 2 for process in self._processes)

    def replace_dead(self) -> int:
        """Start one worker for each that has ended with an error since the last call; return how many."""
        dead = [process for process in self._processes if process.poll() not in {None, 0}]
        for process in dead:
            self._processes.remove(process)
            self._started += 1
            self._start(self._started)
        return len(dead)

    def stop(self, within: timedelta = timedelta(seconds=60)) -> None:
        """Send SIGTERM, wait until they have finished or given back what they hold, and kill who is late."""
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + within.total_seconds()
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for relay in self._relays.values():
            relay.join(5)

    def _start(self, number: int) -> None:
        command = [sys.executable, "-m", "rowferry_cli", "worker", "--log-format", "text", *self._arguments]
        with hold_interrupts():
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=os.environ,
                start_new_session=True,  # Ctrl-C is for the command, which then stops its workers in order.
            )
            self._processes.append(process)
        if process.stderr is not None:
            arguments = (number, process.pid, process.stderr)
            self._relays[process.pid] = Thread(target=self._relay, args=arguments, name=f"relay {number}", daemon=True)
            self._relays[process.pid].start()

    def _relay(self, number: int, pid: int, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                self._log.write(f"worker {number}: {line.rstrip()}")
                self._last_lines[pid] = line.strip()
                self._on_line(self._last_lines[pid])
