"""A thread that reads snapshots and carries out actions, and survives a database outage."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from queue import Empty, SimpleQueue
from threading import Thread

from rowferry.db.connection import Connection, connect
from rowferry.errors import DatabaseUnavailable, RowferryError
from rowferry_cli.status.pause import pause, resume
from rowferry_cli.watch.keys import Action
from rowferry_cli.watch.snapshot import Snapshot, read_snapshot

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


class Poller:
    """Reads a snapshot every `interval`; `state` is replaced as a whole, so any thread may read it."""

    def __init__(self, migration: str, interval: timedelta) -> None:
        """Connect only when started."""
        self.state = State()
        self._migration = migration
        self._interval = interval
        self._requests: SimpleQueue[Action] = SimpleQueue()
        self._connection: Connection | None = None

    def start(self) -> None:
        """Start the thread. It ends with the process, since it may wait for a server that never answers."""
        Thread(target=self._run, name="poller", daemon=True).start()

    def request(self, action: Action) -> None:
        """Carry out an action soon, and read a snapshot after it."""
        self._requests.put(action)

    def _run(self) -> None:
        wait = timedelta(0)
        try:
            while True:
                try:
                    action = self._requests.get(timeout=wait.total_seconds())
                except Empty:
                    action = None
                wait = self._poll(action)
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self.state = replace(self.state, failure=error)

    def _poll(self, action: Action | None) -> timedelta:
        """Carry out the action, if any, read a snapshot, and return how long to wait for the next."""
        wait = self._interval
        try:
            self._connection = self._connection or connect("watch", autocommit=True)
            notice = _report(self._connection, action, self._migration) or self.state.notice
            started = time.monotonic()
            snapshot = read_snapshot(self._connection, self._migration)
            wait = choose_wait(self._interval, timedelta(seconds=time.monotonic() - started))
            self.state = State(snapshot, time.monotonic() + wait.total_seconds(), notice=notice)
        except RowferryError as error:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            notice = f"Not done: {action}." if action else self.state.notice
            self.state = replace(self.state, trouble=str(error), notice=notice)
        return wait


def _report(connection: Connection, action: Action | None, migration: str) -> str:
    """Carry out an action and return its result, or the error (no permission, a lock); "" without an action."""
    if action is None:
        return ""
    try:
        result = act(connection, action, migration)
    except DatabaseUnavailable:
        raise
    except RowferryError as error:
        result = str(error)
    return f"{datetime.now(UTC).astimezone():%H:%M:%S} {result}"


def choose_wait(interval: timedelta, took: timedelta) -> timedelta:
    """Return how long to wait after a reading: the interval, or longer if reading is slow."""
    return max(interval, min(took / LARGEST_SHARE, LONGEST_INTERVAL))


def act(connection: Connection, action: Action, migration: str) -> str:
    """Carry out an action and return its result in one sentence."""
    if action == "pause":
        (row,) = pause(connection, migration)
        return f"Paused: running batches {row['claimed']:,}, waiting {row['waiting']:,}."
    (row,) = resume(connection, migration)
    return f"Resumed: open batches {row['open_batches']:,}." if row["changed"] else "It was not paused."
