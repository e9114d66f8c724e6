"""One of the processes of a supervisor, and its replacements: its start, its life signs, its last words."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from threading import Thread
from typing import IO

from rowferry.interrupts import hold_interrupts
from rowferry_worker.service import REASON, supervised_environment
from rowferry_worker.supervisor.fork import Work, instead_of_exec

KILL_AFTER_ABORT = timedelta(seconds=10)
"""How long a process that hangs may take to print where (SIGABRT, with PYTHONFAULTHANDLER=1)."""

Relay = Callable[[int, str], None]
"""Gets the number of a process and each line that it writes to stderr."""


@dataclass(slots=True)
class SupervisedProcess:
    """A place for a process, which a new one takes when it dies."""

    number: int
    process: subprocess.Popen[str] | None = None
    started: float = 0.0
    deaths: int = 0
    start_at: float | None = 0.0
    """When to start the next process, as time.monotonic(); None: one runs, or no more are wanted."""
    reason: str = ""
    """Why the last process ended, as it said itself."""
    last_line: str = ""
    _relayer: Thread | None = None
    _reports: int = -1
    """The reading end of the pipe that `service.notify` writes to; -1: none."""
    _last_sign: float | None = None
    """When the process last showed that it makes progress; None: it is not ready yet."""
    _aborted_at: float | None = None

    def start(
        self,
        command: Sequence[str],
        count: int,
        environment: Mapping[str, str],
        relay: Relay | None,
        work: Work | None = None,
    ) -> int:
        """Start one of `count` processes and return its id; without `relay` it writes to our stderr.

        As long as this process has one thread, a copy of it that does the `work` takes the place of the command: it has
        imported all that it needs.
        """
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        own = supervised_environment(self.number, count, writing)
        environment = {**os.environ, **environment, **own}
        environment.pop("NOTIFY_SOCKET", None)  # the service manager hears from the supervisor alone
        try:
            with hold_interrupts():  # lest Ctrl-C comes while a process runs that is not noted yet
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=None if relay is None else subprocess.DEVNULL,
                    stderr=None if relay is None else subprocess.PIPE,
                    text=True,
                    errors="replace",
                    env=environment,
                    pass_fds=(writing,),
                    preexec_fn=work and instead_of_exec(work, environment),  # noqa: PLW1509 - there is one thread
                    start_new_session=True,  # Ctrl-C is for the supervisor, which passes it on once
                )
                self._reports = reading
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self.started, self.start_at, self.last_line, self.reason = time.monotonic(), None, "", ""
        self._last_sign = self._aborted_at = None
        if relay is not None and self.process.stderr is not None:
            self._relayer = Thread(target=self._relay_lines, args=(relay, self.process.stderr), daemon=True)
            self._relayer.start()
        return self.process.pid

    def read_reports(self) -> None:
        """Note the life signs and the last words that have come since the last call."""
        with suppress(BlockingIOError):
            for line in os.read(self._reports, 65_536).decode(errors="replace").splitlines() if self.process else ():
                self._last_sign = time.monotonic()
                if line.startswith(REASON):
                    self.reason = line.removeprefix(REASON)

    def end_if_hanging(self, longest_silence: timedelta) -> bool:
        """Abort a process that has shown no progress for so long, later kill it; return whether that began now."""
        now = time.monotonic()
        if self.process is None or self._last_sign is None:
            return False
        if self._aborted_at is not None:
            if now > self._aborted_at + KILL_AFTER_ABORT.total_seconds():
                self.process.kill()
            return False
        if now < self._last_sign + longest_silence.total_seconds():
            return False
        self._aborted_at = now
        self.process.send_signal(signal.SIGABRT)
        return True

    def forget(self) -> None:
        """Note that the process has ended; wait for its last lines."""
        self.read_reports()
        if self._relayer is not None:
            self._relayer.join(5)
        os.close(self._reports)
        self._reports, self.process, self._relayer = -1, None, None

    def _relay_lines(self, relay: Relay, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                self.last_line = line.strip()
                relay(self.number, line.rstrip())
