"""What a PostgreSQL session promises us: that no lock is waited for too long, and that nothing hangs for ever."""

import os
import selectors
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from rowferry.db.statements import statement
from rowferry.db.watchdog import Session, all_answers
from rowferry.errors import UsageError
from rowferry.formatting import parse_seconds

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
CHECK_INTERVAL = "1s"
"""How often the server looks, while it runs a query, whether its client is still there."""


def is_pooled() -> bool:
    """Return whether PgBouncer in transaction mode stands before the database."""
    return os.environ.get(PGBOUNCER, "") not in {"", "0"}


def apply_settings(connection: Session) -> None:
    """Bound the waits of a new session, which is in autocommit; behind PgBouncer that is left to each transaction.

    There, a setting of the session would leak to whoever is given the server's connection next.
    """
    if isinstance(connection, PooledConnection):
        connection.prepare_threshold = None
        connection.notices_loss = _notice_loss(connection, is_local=True)
    elif not _notice_loss(connection, is_local=False):
        _bound_waits(connection, is_local=False, notices_loss=False)


def choose_connection(*, bounded: bool) -> type[Session]:
    """Return the kind of connection that this process needs."""
    if is_pooled():
        return PooledBoundedConnection if bounded else PooledConnection
    return BoundedConnection if bounded else psycopg.Connection[Any]


def lock_timeout() -> timedelta:
    """Return how long a statement of ours waits for a lock that the application holds."""
    return _bound(LOCK_TIMEOUT, DEFAULT_LOCK_TIMEOUT)


def show_life_every() -> timedelta:
    """Return how often a transaction that waits for S3 has to show that it is alive, lest PostgreSQL ends it."""
    return min(timedelta(seconds=30), _bound(IDLE_TIMEOUT, DEFAULT_IDLE_TIMEOUT) / 3)


def _bound(variable: str, default: timedelta) -> timedelta:
    told = os.environ.get(variable)
    if not told:
        return default
    seconds = parse_seconds(told)
    if seconds is None:
        raise UsageError(f"{variable} is {told!r}: set it to a number of seconds, or to a duration such as 30s.")
    return timedelta(seconds=seconds)


def _notice_loss(connection: Session, *, is_local: bool) -> bool:
    """Set the bounds, and have the server look for its client while it runs a query.

    Return False, with nothing set, where it cannot: on some platforms.
    """
    try:
        _bound_waits(connection, is_local=is_local, notices_loss=True)
    except errors.InvalidParameterValue:
        return False
    return True


def _bound_waits(connection: Session, *, is_local: bool, notices_loss: bool) -> None:
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
        "check_interval": CHECK_INTERVAL if notices_loss else None,
    }
    psycopg.Connection.execute(connection, statement("session_settings"), parameters)


def _milliseconds(span: timedelta) -> str:
    return f"{int(span.total_seconds() * 1000)}ms"


def _statement_timeout() -> str:
    """Return the bound of a statement of a worker: a little less than ours, so that the server says it was too slow.

    A connection that we had to cut says nothing, and costs no attempt.
    """
    return _milliseconds(ANSWER_DEADLINE + lock_timeout() - timedelta(seconds=2))


@contextmanager
def answered(connection: Session, within: timedelta = ANSWER_DEADLINE) -> Generator[None]:
    """Cut the connection when the statements of the block are not answered `within`, and the time for locks besides.

    They then end with the OperationalError of a lost connection. A peer that still acknowledges packets but never
    answers defeats keepalives and tcp_user_timeout alike.
    """
    answers = all_answers()
    ticket = answers.expect(connection, time.monotonic() + (within + lock_timeout()).total_seconds())
    try:
        yield
    finally:
        answers.settle(ticket)


def has_spoken(connection: Session) -> bool:
    """Return whether the server has said something unasked, which mostly is that it has ended the session."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


class BoundedConnection(psycopg.Connection[Any]):
    """A connection of a worker: whatever is asked on it is answered in time, or it is cut."""

    def wait(self, *arguments: Any, **settings: Any) -> Any:
        """Wait for an answer, as psycopg does for all of its methods."""
        with answered(self, ANSWER_DEADLINE):
            return super().wait(*arguments, **settings)


class PooledConnection(psycopg.Connection[Any]):
    """A connection to PgBouncer in transaction mode: each transaction bounds its own waits, and nothing outlives it."""

    notices_loss = False

    def execute(self, *arguments: Any, **settings: Any) -> Any:
        """Execute a query, in a bounded transaction of its own where none is open."""
        if self.info.transaction_status is not TransactionStatus.IDLE:
            return super().execute(*arguments, **settings)
        if self.autocommit:
            with self.transaction():
                return super().execute(*arguments, **settings)
        _bound_waits(self, is_local=True, notices_loss=self.notices_loss)
        return super().execute(*arguments, **settings)

    @contextmanager
    def transaction(self, *arguments: Any, **settings: Any) -> Generator[psycopg.Transaction]:
        """Open a bounded transaction, or a savepoint within it."""
        outermost = self.info.transaction_status is TransactionStatus.IDLE
        with super().transaction(*arguments, **settings) as transaction:
            if outermost:
                _bound_waits(self, is_local=True, notices_loss=self.notices_loss)
            yield transaction


class PooledBoundedConnection(PooledConnection, BoundedConnection):
    """Both of it: a worker's connection to PgBouncer."""
