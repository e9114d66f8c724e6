"""Several worker processes behind one command: each a fresh interpreter, replaced when it dies of a fault."""

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import FrameType

from rowferry.db.connection import connect
from rowferry.db.schema import check_version
from rowferry_worker.monitoring.server import share_metrics
from rowferry_worker.objects.retry import retry_delay
from rowferry_worker.service import notify, supervised_environment

_log = logging.getLogger(__name__)

LOOK_UP_EVERY = timedelta(seconds=0.1)
HEALTHY_AFTER = timedelta(minutes=1)
"""A process that lived this long begins anew to count its deaths, on which the rest before the next start depends."""
KILL_AFTER_GRACE = timedelta(seconds=20)
"""How much longer than its own grace a process may take to end; then it is killed and the server rolls back."""
MISTAKE = 2
"""Exit status of a worker whose settings cannot work: another one would end the same way."""
WORK_LEFT = 3
"""Exit status of a worker that does not wait for what is left: another one would not either."""


def run_processes(
    count: int, command: Sequence[str], grace: timedelta, metrics_host: str, metrics_port: int | None
) -> int:
    """Run `count` processes of a command to their end and return the exit status; serve their metrics on one port.

    Raises UsageError or DatabaseUnavailable, before anything is started, when all would end by that.
    """
    with connect("supervisor") as connection:
        check_version(connection)
    if metrics_port is None:
        return Supervisor(count, command, grace).run()
    with share_metrics() as shared:
        supervisor = Supervisor(count, command, grace, shared.environment, shared.forget)
        with shared.serve(metrics_host, metrics_port, supervisor.pids):
            return supervisor.run()


@dataclass(slots=True)
class _Place:
    """One of the N processes, whichever process fills it now."""

    number: int
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    deaths: int = 0
    start_at: float | None = 0.0
    """When to start the next process, by time.monotonic(); None: one runs, or none is wanted any more."""


@dataclass(slots=True)
class Supervisor:
    """Keeps `count` worker processes running until they are told to stop or have nothing left to do."""

    count: int
    command: Sequence[str]
    grace: timedelta
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    on_death: Callable[[int], None] = lambda _number: None
    """Told the number of a process that has ended, before another one takes its place."""
    _places: list[_Place] = field(init=False, default_factory=list[_Place])
    _signals: int = field(init=False, default=0)
    _passed_on: int = field(init=False, default=0)
    _kill_at: float | None = field(init=False, default=None)
    _mistake: bool = field(init=False, default=False)
    _work_left: bool = field(init=False, default=False)

    def run(self) -> int:
        """Return the exit status once all have ended: 2 when one ended by a user's mistake, 3 by work left, else 0.

        SIGTERM and SIGINT are passed on, the second one as well. Must be called on the main thread.
        """
        signal.signal(signal.SIGTERM, self._note_signal)
        signal.signal(signal.SIGINT, self._note_signal)
        self._places = [_Place(number) for number in range(1, self.count + 1)]
        notify("READY=1", f"STATUS=looking after {self.count} processes")
        try:
            while any(place.process or place.start_at is not None for place in self._places):
                self._look_after_all()
                notify("WATCHDOG=1")
                time.sleep(LOOK_UP_EVERY.total_seconds())
        finally:
            self._kill_rest()
        return MISTAKE if self._mistake else WORK_LEFT if self._work_left else 0

    def pids(self) -> dict[int, int]:
        """Return the process ids of those that run, by their numbers. May be called on any thread."""
        return {place.number: process.pid for place in self._places if (process := place.process) is not None}

    def _note_signal(self, number: int, _frame: FrameType | None) -> None:
        del number
        self._signals += 1

    def _look_after_all(self) -> None:
        for place in self._places:
            if place.process is not None:
                self._bury(place)
        for place in self._places:
            if place.start_at is not None and time.monotonic() >= place.start_at:
                self._start(place)
        self._pass_signals_on()

    def _start(self, place: _Place) -> None:
        environment = {**os.environ, **self.environment, **supervised_environment(place.number)}
        environment.pop("NOTIFY_SOCKET", None)  # The service manager hears of the supervisor alone.
        place.process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the supervisor, which passes it on once.
        )
        place.started, place.start_at = time.monotonic(), None
        _log.info("process started", extra={"number": place.number, "pid": place.process.pid})

    def _bury(self, place: _Place) -> None:
        """See whether a process has ended, and what follows from how it did."""
        if place.process is None or (status := place.process.poll()) is None:
            return
        fields = {"number": place.number, "pid": place.process.pid, "status": status}
        place.process = None
        self.on_death(place.number)
        if status == MISTAKE:
            self._mistake = True
            self._signals = max(self._signals, 1)
        elif status in {0, WORK_LEFT} or self._signals:
            self._work_left = self._work_left or status == WORK_LEFT
            _log.info("process ended", extra=fields)
        else:
            lived = time.monotonic() - place.started
            place.deaths = 1 if lived > HEALTHY_AFTER.total_seconds() else place.deaths + 1
            wait = retry_delay(place.deaths, base=timedelta(seconds=1), longest=timedelta(seconds=30))
            place.start_at = time.monotonic() + wait.total_seconds()
            _log.warning("process died; another one takes its place", extra=fields)

    def _pass_signals_on(self) -> None:
        """Pass the first signal on as SIGTERM and the second as SIGINT: two alike may arrive as one.

        Kill who stays long after.
        """
        if not self._signals:
            return
        pass_on = self._passed_on < min(self._signals, 2)
        self._passed_on += pass_on
        for place in self._places:
            place.start_at = None
            if pass_on and place.process is not None:
                place.process.send_signal(signal.SIGTERM if self._passed_on == 1 else signal.SIGINT)
        self._kill_at = self._kill_at or time.monotonic() + (self.grace + KILL_AFTER_GRACE).total_seconds()
        if time.monotonic() > self._kill_at:
            self._kill_rest()

    def _kill_rest(self) -> None:
        for place in self._places:
            if place.process is not None:
                place.process.kill()
                place.process.wait()
                self.on_death(place.number)
                place.process = None
