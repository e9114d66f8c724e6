"""A thread that reads snapshots and carries out actions, and survives a database outage."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from queue import Empty, SimpleQueue
from threading import Thread

from rowferry.db.connection import Connection, connect
from rowferry.errors import DatabaseUnavailable, RowferryError
from rowferry.reports.pause import pause, resume
from rowferry_cli.watch.keys import Action
from rowferry_cli.watch.pace import PaceHistory
from rowferry_cli.watch.reading import read_snapshot, requeue_errors
from rowferry_cli.watch.snapshot import Snapshot

LARGEST_SHARE = 0.1
"""Reading takes at most this share of the time: slow readings become rarer."""
LONGEST_INTERVAL = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class State:
    """The newest snapshot, and messages beside it."""

    snapshot: Snapshot | None = None
    next_at: float = 0.0
    """When the next one is due, by time.monotonic()."""
    trouble: str = ""
    """Why there is no newer snapshot."""
    notice: str = ""
    """The result of the last action."""
    failure: BaseException | None = None
    """A bug that has ended the thread."""


@dataclass(frozen=True, slots=True)
class Focus:
    """What is read."""

    migration: str
    failures_of: str | None = None
    """The queue whose failed entries are listed; None: none."""


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """What is to be done soon, beside reading a snapshot."""

    action: Action | None = None
    """None: nothing but reading."""
    migration: str = ""
    queue: str | None = None
    """The queue whose errors are requeued; None: all."""


class Poller:
    """Reads a snapshot every `interval`; `state` is replaced as a whole, so any thread may read it."""

    def __init__(self, migration: str, interval: timedelta) -> None:
        """Connect only when started."""
        self.state = State()
        self._focus = Focus(migration)
        self._interval = interval
        self._history = PaceHistory(migration)
        self._history_of = migration
        self._requests: SimpleQueue[ActionRequest] = SimpleQueue()
        self._connection: Connection | None = None

    def start(self) -> None:
        """Start the thread. It ends with the process, since it may wait for a server that never answers."""
        Thread(target=self._run, name="poller", daemon=True).start()

    def request(self, action: Action, migration: str, queue: str | None) -> None:
        """Carry out an action soon, on the migration and queue that are looked at, and read a snapshot after it."""
        self._requests.put(ActionRequest(action, migration, queue))

    def look_at(self, focus: Focus) -> None:
        """Read this from now on; at once if it is another."""
        if focus != self._focus:
            self._focus = focus
            self._requests.put(ActionRequest())

    def _run(self) -> None:
        try:
            self._poll_for_ever()
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self.state = replace(self.state, failure=error)

    def _poll_for_ever(self) -> None:
        wait = timedelta(0)
        while True:
            try:
                request = self._requests.get(timeout=wait.total_seconds())
            except Empty:
                request = ActionRequest()
            wait = self._poll(request)

    def _poll(self, request: ActionRequest) -> timedelta:
        """Carry out the action, if any, read a snapshot, and return how long to wait for the next."""
        wait, focus = self._interval, self._focus
        try:
            notice = self._act(request) or self.state.notice
            started = time.monotonic()
            snapshot = self._read(focus)
            wait = choose_wait(self._interval, timedelta(seconds=time.monotonic() - started))
            self.state = State(snapshot, time.monotonic() + wait.total_seconds(), notice=notice)
        except RowferryError as error:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            notice = f"Not done: {request.action}." if request.action else self.state.notice
            self.state = replace(self.state, trouble=str(error), notice=notice)
        return wait

    def _read(self, focus: Focus) -> Snapshot:
        if focus.migration != self._history_of:
            self._history, self._history_of = PaceHistory(focus.migration), focus.migration
        return read_snapshot(self._connect(), focus.migration, self._history, failures_of=focus.failures_of)

    def _act(self, request: ActionRequest) -> str:
        """Carry out an action and return its result, or the error (no permission, a lock); "" without an action."""
        if request.action is None:
            return ""
        try:
            result = act(self._connect(), request.action, request.migration, request.queue)
        except DatabaseUnavailable:
            raise
        except RowferryError as error:
            result = str(error)
        return f"{datetime.now(UTC).astimezone():%H:%M:%S} {result}"

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = connect("watch", autocommit=True)
        return self._connection


def choose_wait(interval: timedelta, took: timedelta) -> timedelta:
    """Return how long to wait after a reading: the interval, or longer if reading is slow."""
    return max(interval, min(took / LARGEST_SHARE, LONGEST_INTERVAL))


def act(connection: Connection, action: Action, migration: str, queue: str | None = None) -> str:
    """Carry out an action and return its result in one sentence. `queue`: whose errors are requeued; None: all."""
    match action:
        case "pause":
            (status,) = pause(connection, migration)
            return f"Paused: running batches {status.claimed:,}, waiting {status.waiting:,}."
        case "resume":
            (status,) = resume(connection, migration)
            return f"Resumed: open batches {status.open_batches:,}." if status.changed else "It was not paused."
        case "requeue":
            return f"Requeued batches: {requeue_errors(connection, migration, queue):,}."
