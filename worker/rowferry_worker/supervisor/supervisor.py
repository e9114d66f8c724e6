"""Keeps several worker processes running, each replaced when it dies."""

import logging
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from types import FrameType
from typing import Self

from rowferry.db.connection import Connection, call, connect
from rowferry.db.schema import check_version
from rowferry.db.timeouts import is_pooled
from rowferry.errors import UsageError, WorkLeft
from rowferry.s3.retry import retry_delay
from rowferry_worker.machine import log_machine
from rowferry_worker.monitoring.server import share_metrics
from rowferry_worker.service import notify
from rowferry_worker.supervisor.fork import Work
from rowferry_worker.supervisor.supervised_process import Relay, SupervisedProcess

_log = logging.getLogger(__name__)

CONNECTIONS_A_PROCESS = 2
"""The ledger's, and one for a batch."""
LOOK_UP_EVERY = timedelta(seconds=0.1)
NOTIFY_EVERY = timedelta(seconds=5)
HEALTHY_AFTER = timedelta(minutes=1)
"""A process that lived this long resets the count of deaths, on which the wait before the next start depends."""
MAX_RESTART_WAIT = timedelta(seconds=30)
KILL_AFTER_GRACE = timedelta(seconds=20)
"""How much longer than its own grace a process may take to end; then it is killed and the server rolls back."""
LONGEST_SILENCE = timedelta(minutes=2)
"""A process whose slots made no progress for so long is replaced, as by WatchdogSec= of the systemd unit."""
MISTAKE = 2
"""Exit status of a worker whose settings cannot work: another one would end the same way."""
WORK_LEFT = 3
"""Exit status of a worker that does not wait for the work that is left: another one would not either."""


def run_processes(
    count: int, command: Sequence[str], work: Work, grace: timedelta, *, metrics_host: str, metrics_port: int | None
) -> int:
    """Run `count` processes of a command to their end and return the exit status; serve their metrics on one port.

    The first ones are copies of this process, which do the `work`: what that takes is to be imported before. Raises
    UsageError or DatabaseUnavailable, before any is started, if all would end by that. Raises UsageError or WorkLeft in
    the end if a process ended by that.
    """
    with connect("supervisor") as connection:
        check_version(connection)
        count = bound_processes(connection, count)
    log_machine(count)
    if metrics_port is None:
        return _run(Supervisor(count, command, grace, work=work), nullcontext())
    with share_metrics() as shared:
        supervisor = Supervisor(
            count, command, grace, work=work, environment=shared.environment, on_death=shared.forget
        )
        return _run(supervisor, shared.serve(metrics_host, metrics_port, supervisor.pids))


def bound_processes(connection: Connection, wanted: int) -> int:
    """Return how many processes the connections allow, which need two each; at least 1. Log that they are fewer.

    Behind PgBouncer its pool bounds them, which nothing here can see.
    """
    if is_pooled():
        return wanted
    share = call(connection, "share_connections")[0]["share_connections"]
    allowed = max(1, min(wanted, share // CONNECTIONS_A_PROCESS))
    if allowed < wanted:
        fields = {"processes": allowed, "wanted": wanted, "connections": share}
        _log.warning("PostgreSQL's connections allow fewer processes", extra=fields)
    return allowed


def _run(supervisor: "Supervisor", beside: AbstractContextManager[object]) -> int:
    """Run a supervisor and return its exit status; raise what its processes ended by, if they said so."""
    status = supervisor.run(beside)
    if supervisor.last_words and status == MISTAKE:
        raise UsageError(supervisor.last_words)
    if supervisor.last_words and status == WORK_LEFT:
        raise WorkLeft(supervisor.last_words)
    return status


class Supervisor:
    """Starts `count` worker processes, replaces those that die, and leaves none behind.

    `run` supervises in the foreground. As a context manager it starts the processes and stops them in the end; the
    caller replaces dead ones by `replace_dead`.
    """

    def __init__(
        self,
        count: int,
        command: Sequence[str],
        grace: timedelta = timedelta(seconds=30),
        *,
        work: Work | None = None,
        environment: Mapping[str, str] | None = None,
        on_death: Callable[[int], None] = lambda _number: None,
        relay: Relay | None = None,
        max_restart_wait: timedelta = MAX_RESTART_WAIT,
        longest_silence: timedelta = LONGEST_SILENCE,
    ) -> None:
        """`grace`: of the processes; `on_death` gets the number of each process that has ended.

        `relay` gets the number and each line that a process writes to stderr; None: it writes to our stderr. `work`:
        what a copy of this process does in the place of the command, where one may be made.
        """
        self._command, self._work = command, work
        self._grace = grace
        self._environment = environment or {}
        self._on_death = on_death
        self._relay = relay
        self._max_restart_wait = max_restart_wait
        self._longest_silence = longest_silence
        self._places = [SupervisedProcess(number) for number in range(1, count + 1)]
        self._stop_signals = 0
        self._signals_passed_on = 0
        self._kill_at: float | None = None
        self._work_left = False
        self.dead_pids: set[int] = set()
        """The ids of the processes that have died."""
        self.ended_by_mistake = False
        """Whether a process has ended because its settings cannot work: another one would end the same way."""
        self.last_words = ""
        """Why a process ended by mistake or left work, as it said; else the last relayed line of the last that died."""

    def run(self, beside: AbstractContextManager[object]) -> int:
        """Return the exit status once all have ended: 2 when one ended by a user's mistake, 3 by work left, else 0.

        SIGTERM and SIGINT are passed on, the second one as well. Must be called on the main thread. `beside` is entered
        once processes were started: it may start threads.
        """
        signal.signal(signal.SIGTERM, self._note_signal)
        signal.signal(signal.SIGINT, self._note_signal)
        notify("READY=1", f"STATUS=supervising {len(self._places)} processes")
        try:
            self.replace_dead()
            with beside:
                self._run_to_end()
        finally:
            self._kill_all()
        return MISTAKE if self.ended_by_mistake else WORK_LEFT if self._work_left else 0

    def __enter__(self) -> Self:
        """Start the processes; none is left behind if that fails."""
        try:
            self.replace_dead()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Send SIGTERM, wait for a graceful stop, then SIGKILL; on Ctrl-C meanwhile have batches released at once."""
        self._stop_signals = max(self._stop_signals, 1)
        try:
            self._run_to_end()
        except KeyboardInterrupt:
            self._stop_signals = 2
            self._run_to_end()
            raise
        finally:
            self._kill_all()

    def pids(self) -> dict[int, int]:
        """Return the ids of the running processes, by their numbers. May be called on any thread."""
        return {place.number: process.pid for place in self._places if (process := place.process) is not None}

    def replace_dead(self) -> int:
        """Start processes that are due, in place of dead ones; return how many have died since the last call."""
        died = sum(self._note_end(place) for place in self._places)
        if self._stop_signals:
            self._pass_signals_on()
        for place in self._places:
            if place.start_at is not None and time.monotonic() >= place.start_at:
                self._start(place)
        return died

    def _run_to_end(self) -> None:
        """Look after the processes until all have ended."""
        notify_at = 0.0
        while True:
            self.replace_dead()
            if not any(place.process or place.start_at is not None for place in self._places):
                return
            if time.monotonic() >= notify_at:
                notify("WATCHDOG=1")
                notify_at = time.monotonic() + NOTIFY_EVERY.total_seconds()
            time.sleep(LOOK_UP_EVERY.total_seconds())

    def _note_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stop_signals += 1

    def _start(self, place: SupervisedProcess) -> None:
        pid = place.start(self._command, len(self._places), self._environment, self._relay, self._work)
        _log.info("process started", extra={"number": place.number, "pid": pid})

    def _note_end(self, place: SupervisedProcess) -> bool:
        """Note whether a process has ended, and how; return whether it has died and is to be replaced."""
        if place.process is None:
            return False
        place.read_reports()
        if (status := place.process.poll()) is None:
            if place.end_if_hanging(self._longest_silence):
                _log.error("process hangs, replacing it", extra={"number": place.number, "pid": place.process.pid})
            return False
        fields = {"number": place.number, "pid": place.process.pid, "status": status}
        self._forget(place)
        if status == MISTAKE:
            self.ended_by_mistake, self.last_words = True, place.reason or place.last_line
            self._stop_signals = max(self._stop_signals, 1)
        elif status in {0, WORK_LEFT} or self._stop_signals:
            if status == WORK_LEFT:
                self._work_left, self.last_words = True, self.last_words or place.reason
            _log.info("process ended", extra=fields)
        else:
            lived = time.monotonic() - place.started
            place.deaths = 1 if lived > HEALTHY_AFTER.total_seconds() else place.deaths + 1
            wait = retry_delay(place.deaths, base=timedelta(seconds=1), longest=self._max_restart_wait)
            place.start_at = time.monotonic() + wait.total_seconds()
            self.last_words = self.last_words if self.ended_by_mistake else place.reason or place.last_line
            self.dead_pids.add(fields["pid"])
            _log.warning("process died, replacing it", extra=fields)
            return True
        return False

    def _pass_signals_on(self) -> None:
        """Pass the first signal on as SIGTERM and the second as SIGINT: two alike may arrive as one.

        Kill the processes that run long after.
        """
        pass_on = self._signals_passed_on < min(self._stop_signals, 2)
        self._signals_passed_on += pass_on
        for place in self._places:
            place.start_at = None
            if pass_on and place.process is not None:
                place.process.send_signal(signal.SIGTERM if self._signals_passed_on == 1 else signal.SIGINT)
        self._kill_at = self._kill_at or time.monotonic() + (self._grace + KILL_AFTER_GRACE).total_seconds()
        if time.monotonic() > self._kill_at:
            self._kill_all()

    def _kill_all(self) -> None:
        for place in self._places:
            if place.process is not None:
                place.process.kill()
                place.process.wait()
                self._forget(place)

    def _forget(self, place: SupervisedProcess) -> None:
        place.forget()
        self._on_death(place.number)
