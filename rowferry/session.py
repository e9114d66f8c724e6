"""What a PostgreSQL session promises us: that no lock is waited for too long, and that nothing hangs for ever."""

import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from threading import Lock
from typing import Any

import psycopg
from psycopg import errors

from rowferry.deadline_watch import DeadlineWatch
from rowferry.statements import statement

PGBOUNCER = "ROWFERRY_PGBOUNCER"
"""Set to 1 where DATABASE_URL leads to PgBouncer in transaction mode (`--pgbouncer`)."""
LOCK_TIMEOUT = "ROWFERRY_LOCK_TIMEOUT"
"""Seconds that a statement of ours waits for a lock that the application holds (`--lock-timeout`)."""
DEFAULT_LOCK_TIMEOUT = timedelta(seconds=5)
LOST_AFTER = "ROWFERRY_LOST_AFTER"
"""Seconds of silence after which the server takes a client for lost and frees its batch (`--lost-after`)."""
DEFAULT_LOST_AFTER = timedelta(seconds=15)
IDLE_TIMEOUT = "ROWFERRY_IDLE_TIMEOUT"
"""Seconds that a transaction of ours may wait for us, as a batch's does for its objects (`--idle-timeout`)."""
DEFAULT_IDLE_TIMEOUT = timedelta(minutes=10)
KEEPALIVES = 3
"""Probes without an answer that end a connection which has nothing to send."""
ANSWER_DEADLINE = timedelta(seconds=20)
"""A statement of ours that has no answer by then has lost its server: kernels see dead peers, not silent ones."""

Session = psycopg.Connection[Any]


def is_pooled() -> bool:
    """Return whether PgBouncer in transaction mode stands before the database."""
    return os.environ.get(PGBOUNCER, "") not in {"", "0"}


def apply_settings(connection: Session) -> None:
    """Bound the waits of a new session, which is in autocommit; behind PgBouncer that is left to each transaction.

    There, a setting of the session would leak to whoever is given the server's connection next.
    """
    if is_pooled():
        connection.prepare_threshold = None
        return
    _set(connection, is_local=False)
    # Some platforms cannot look while they run a query: what the settings above do must suffice there.
    with suppress(errors.InvalidParameterValue):
        connection.execute(statement("notice_lost_clients"), {"is_local": False})


def begin_transaction(connection: Session) -> None:
    """Bound the waits of the transaction that the next statement would open, where the session could not."""
    if is_pooled():
        _set(connection, is_local=True)


def lock_timeout() -> timedelta:
    """Return how long a statement of ours waits for a lock that the application holds."""
    return _bound(LOCK_TIMEOUT, DEFAULT_LOCK_TIMEOUT)


def show_life_every() -> timedelta:
    """Return how often a transaction that waits for S3 has to show that it is alive, lest PostgreSQL ends it."""
    return min(timedelta(seconds=30), _bound(IDLE_TIMEOUT, DEFAULT_IDLE_TIMEOUT) / 3)


def _bound(variable: str, default: timedelta) -> timedelta:
    return timedelta(seconds=float(os.environ.get(variable) or default.total_seconds()))


def _set(connection: Session, *, is_local: bool) -> None:
    """Set the bounds: an unanswered packet ends a connection after `lost_after`, silence after 5/3 of it."""
    lost_after = _bound(LOST_AFTER, DEFAULT_LOST_AFTER).total_seconds()
    interval = max(1, round(lost_after / KEEPALIVES))
    parameters = {
        "is_local": is_local,
        "lock_timeout": _milliseconds(lock_timeout()),
        "keepalives_idle": str(2 * interval),
        "keepalives_interval": str(interval),
        "keepalives_count": str(KEEPALIVES),
        "user_timeout": str(int(lost_after * 1000)),
        "idle_timeout": _milliseconds(_bound(IDLE_TIMEOUT, DEFAULT_IDLE_TIMEOUT)),
        "statement_timeout": _statement_timeout() if isinstance(connection, BoundedConnection) else None,
    }
    connection.execute(statement("session_settings"), parameters)


def _milliseconds(span: timedelta) -> str:
    return f"{int(span.total_seconds() * 1000)}ms"


def _statement_timeout() -> str:
    """Return the bound of a statement of a worker: a little less than ours, so that the server says it was too slow.

    A connection that we had to cut says nothing, and costs no attempt.
    """
    return _milliseconds(ANSWER_DEADLINE + lock_timeout() - timedelta(seconds=2))


class _Answers:
    """The connections that must be answered, and until when."""

    def __init__(self) -> None:
        self._until: dict[object, tuple[float, Session]] = {}
        self._turn = Lock()

    def expect(self, connection: Session, until: float) -> object:
        """Have the connection cut at `until` (`time.monotonic()`), unless what is returned is settled before."""
        ticket = object()
        with self._turn:
            self._until[ticket] = until, connection
        return ticket

    def settle(self, ticket: object) -> None:
        """Say that the answer is there."""
        with self._turn:
            self._until.pop(ticket, None)

    def cancel_overdue(self, now: float) -> None:
        """Cut the connections whose time is over."""
        with self._turn:
            for ticket in [ticket for ticket, (until, _) in self._until.items() if until <= now]:
                _cut(self._until.pop(ticket)[1])


@cache
def _answers() -> _Answers:
    """Return what one thread of this process watches: a timer, which is a thread, for each statement costs 0.1 ms."""
    answers = _Answers()
    DeadlineWatch().add(answers)
    return answers


@contextmanager
def answered(connection: Session, within: timedelta = ANSWER_DEADLINE) -> Generator[None]:
    """Cut the connection when the statements of the block are not answered `within`, and the time for locks besides.

    They then end with the OperationalError of a lost connection. A peer that still acknowledges packets but never
    answers defeats keepalives and tcp_user_timeout alike.
    """
    answers = _answers()
    ticket = answers.expect(connection, time.monotonic() + (within + lock_timeout()).total_seconds())
    try:
        yield
    finally:
        answers.settle(ticket)


def _cut(connection: Session) -> None:
    """Shut the socket down under the thread that waits on it."""
    with suppress(OSError, psycopg.Error):
        duplicate = socket.socket(fileno=os.dup(connection.fileno()))
        with duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)


class BoundedConnection(psycopg.Connection[Any]):
    """A connection of a worker: whatever is asked on it is answered in time, or it is cut."""

    def wait(self, *arguments: Any, **settings: Any) -> Any:
        """Wait for an answer, as psycopg does for all of its methods."""
        with answered(self, ANSWER_DEADLINE):
            return super().wait(*arguments, **settings)
