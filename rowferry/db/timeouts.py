"""The timeouts of a PostgreSQL session, on the server's side: for locks, idle transactions and lost clients."""

import os
import selectors
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from rowferry.db.deadlines import ANSWER_DEADLINE, BoundedConnection, Session
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.formatting import parse_seconds

PGBOUNCER = "ROWFERRY_PGBOUNCER"
"""Set to 1 if DATABASE_URL leads to PgBouncer in transaction mode (`--pgbouncer`)."""
LOCK_TIMEOUT = "ROWFERRY_LOCK_TIMEOUT"
"""How long a statement waits for a lock that the application holds (`--lock-timeout`)."""
DEFAULT_LOCK_TIMEOUT = timedelta(seconds=5)
LOST_AFTER = "ROWFERRY_LOST_AFTER"
"""Silence after which the server takes a client for lost and frees its batch (`--lost-after`)."""
DEFAULT_LOST_AFTER = timedelta(seconds=15)
IDLE_TIMEOUT = "ROWFERRY_IDLE_TIMEOUT"
"""How long a transaction may be idle, as a batch's is while its objects are copied (`--idle-timeout`)."""
DEFAULT_IDLE_TIMEOUT = timedelta(minutes=10)
KEEPALIVES = 3
"""Unanswered probes that end a connection which has nothing to send."""
CHECK_INTERVAL = "1s"
"""How often the server looks, while it runs a query, whether its client is still there."""


def is_pooled() -> bool:
    """Return whether PgBouncer in transaction mode stands before the database."""
    return os.environ.get(PGBOUNCER, "") not in {"", "0"}


def lock_timeout() -> timedelta:
    return _read(LOCK_TIMEOUT, DEFAULT_LOCK_TIMEOUT)


def show_life_every() -> timedelta:
    """Return how often a transaction that waits for S3 sends something, lest PostgreSQL or a script ends it as idle."""
    return min(timedelta(seconds=1), _read(IDLE_TIMEOUT, DEFAULT_IDLE_TIMEOUT) / 3)


def statement_deadline() -> timedelta:
    """Return how long a worker waits for the answer to one statement."""
    return ANSWER_DEADLINE + lock_timeout()


def _read(variable: str, default: timedelta) -> timedelta:
    text = os.environ.get(variable)
    if not text:
        return default
    seconds = parse_seconds(text)
    if seconds is None:
        raise UsageError(f"{variable} is {text!r}: set it to a number of seconds, or to a duration such as 30s.")
    return timedelta(seconds=seconds)


def choose_connection(*, bounded: bool) -> type[Session]:
    """Return the kind of connection that this process needs."""
    if is_pooled():
        return PooledBoundedConnection if bounded else PooledConnection
    return BoundedConnection if bounded else psycopg.Connection[Any]


def apply_settings(connection: Session) -> None:
    """Set the timeouts of a new session, which is in autocommit.

    Behind PgBouncer each transaction sets them: those of a session would leak to the next client of the connection.
    """
    if isinstance(connection, BoundedConnection):
        connection.answer_within = statement_deadline()
    if isinstance(connection, PooledConnection):
        connection.prepare_threshold = None
        connection.checks_client = _try_client_checks(connection, is_local=True)
    elif not _try_client_checks(connection, is_local=False):
        _set_timeouts(connection, is_local=False, checks_client=False)


def _try_client_checks(connection: Session, *, is_local: bool) -> bool:
    """Set the timeouts, and have the server look for its client while it runs a query.

    Return False, with nothing set, where the server's platform cannot look.
    """
    try:
        _set_timeouts(connection, is_local=is_local, checks_client=True)
    except errors.InvalidParameterValue:
        return False
    return True


def _set_timeouts(connection: Session, *, is_local: bool, checks_client: bool) -> None:
    """Set them: an unanswered packet ends a connection after `lost_after`, silence after 5/3 of it."""
    lost_after = _read(LOST_AFTER, DEFAULT_LOST_AFTER).total_seconds()
    interval = max(1, round(lost_after / KEEPALIVES))
    parameters = {
        "is_local": is_local,
        "lock_timeout": _milliseconds(lock_timeout()),
        "keepalives_idle": str(2 * interval),
        "keepalives_interval": str(interval),
        "keepalives_count": str(KEEPALIVES),
        "user_timeout": str(int(lost_after * 1000)),
        "idle_timeout": _milliseconds(_read(IDLE_TIMEOUT, DEFAULT_IDLE_TIMEOUT)),
        "statement_timeout": _statement_timeout() if isinstance(connection, BoundedConnection) else None,
        "check_interval": CHECK_INTERVAL if checks_client else None,
    }
    psycopg.Connection.execute(connection, statement("session_settings"), parameters)


def _milliseconds(span: timedelta) -> str:
    return f"{int(span.total_seconds() * 1000)}ms"


def _statement_timeout() -> str:
    """Return a little less than our own deadline, so that the server says that the statement was too slow.

    A connection that we cut says nothing, and costs no attempt.
    """
    return _milliseconds(statement_deadline() - timedelta(seconds=2))


def has_spoken(connection: Session) -> bool:
    """Return whether the server has sent something unasked: as a rule, that it has ended the session."""
    with selectors.PollSelector() as selector:  # poll(2) takes no descriptor of its own
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


class PooledConnection(psycopg.Connection[Any]):
    """A connection to PgBouncer in transaction mode: each transaction sets its own timeouts, and none outlives it."""

    checks_client = False

    def execute(self, *arguments: Any, **settings: Any) -> Any:
        """Execute a query, in a transaction of its own where none is open."""
        if self.info.transaction_status is not TransactionStatus.IDLE:
            return super().execute(*arguments, **settings)
        if self.autocommit:
            with self.transaction():
                return super().execute(*arguments, **settings)
        _set_timeouts(self, is_local=True, checks_client=self.checks_client)
        return super().execute(*arguments, **settings)

    @contextmanager
    def transaction(self, *arguments: Any, **settings: Any) -> Generator[psycopg.Transaction]:
        """Open a transaction, which sets its timeouts, or a savepoint within it."""
        outermost = self.info.transaction_status is TransactionStatus.IDLE
        with super().transaction(*arguments, **settings) as transaction:
            if outermost:
                _set_timeouts(self, is_local=True, checks_client=self.checks_client)
            yield transaction


class PooledBoundedConnection(PooledConnection, BoundedConnection):
    """A worker's connection to PgBouncer."""
