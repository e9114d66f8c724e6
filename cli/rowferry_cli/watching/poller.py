"""Station 2 of 3: a thread that reads pictures and does what keys ask for, and outlives the database going away."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from queue import Empty, SimpleQueue
from threading import Thread

from rowferry.db.connection import Connection, connect
from rowferry.errors import DatabaseUnavailable, RowferryError
from rowferry.reports.pause import pause, resume
from rowferry_cli.watching.keys import Action
from rowferry_cli.watching.snapshot import Picture, read_picture, requeue_errors

LARGEST_SHARE = 0.1
"""Watching takes at most this share of the time: where reading is slow, it is done less often."""
LONGEST_REST = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest picture, and what is to be said beside it."""

    picture: Picture | None = None
    next_at: float = 0.0
    """When the next one is to be read, by time.monotonic()."""
    trouble: str = ""
    """Why there is no newer picture."""
    notice: str = ""
    """What came of the last key."""


class Source:
    """Reads every `interval`; `seen` is replaced whole, so that it can be read at any time."""

    def __init__(self, migration: str, interval: timedelta) -> None:
        """Connect when it is started."""
        self.seen = Seen()
        self._migration = migration
        self._interval = interval
        self._asked: SimpleQueue[Action] = SimpleQueue()
        self._connection: Connection | None = None

    def start(self) -> None:
        """Begin to read. The thread ends with the process: it may be waiting for a server that never answers."""
        Thread(target=self._run, name="source", daemon=True).start()

    def ask(self, action: Action) -> None:
        """Have something done, and a new picture read after it."""
        self._asked.put(action)

    def _run(self) -> None:
        rest = timedelta(0)
        while True:
            action = self._wait(rest)
            rest = self._look(action)

    def _look(self, action: Action | None) -> timedelta:
        """Do what was asked for, if anything, read a picture, and return how long to rest until the next."""
        rest = self._interval
        try:
            notice = self._act(action) if action else self.seen.notice
            began = time.monotonic()
            picture = read_picture(self._connect(), self._migration)
            rest = choose_rest(self._interval, timedelta(seconds=time.monotonic() - began))
            self.seen = Seen(picture, time.monotonic() + rest.total_seconds(), notice=notice)
        except RowferryError as error:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            notice = f"Not done: {action}." if action else self.seen.notice
            self.seen = replace(self.seen, trouble=str(error), notice=notice)
        return rest

    def _wait(self, rest: timedelta) -> Action | None:
        try:
            return self._asked.get(timeout=rest.total_seconds())
        except Empty:
            return None

    def _act(self, action: Action) -> str:
        """Do it and return what to say; a mistake (no permission, a lock) is said instead."""
        try:
            words = act(self._connect(), action, self._migration)
        except DatabaseUnavailable:
            raise
        except RowferryError as error:
            words = str(error)
        return f"{datetime.now(UTC).astimezone():%H:%M:%S} {words}"

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = connect("watch", autocommit=True)
        return self._connection


def choose_rest(interval: timedelta, took: timedelta) -> timedelta:
    """Return how long to rest after a reading that took so long: the interval, or more where reading is slow."""
    return max(interval, min(took / LARGEST_SHARE, LONGEST_REST))


def act(connection: Connection, action: Action, migration: str) -> str:
    """Do what a key asked for and return what came of it."""
    match action:
        case "pause":
            return " ".join(
                f"Paused: in hand {standing.in_hand:,}, waiting {standing.waiting:,}."
                for standing in pause(connection, migration)
            )
        case "resume":
            return " ".join(
                f"Resumed: open batches {standing.open_batches:,}." if standing.changed else "It was not paused."
                for standing in resume(connection, migration)
            )
        case "requeue":
            return f"Batches back in the queue: {requeue_errors(connection, migration):,}."
