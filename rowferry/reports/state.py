"""How a migration stands: the word of rowferry.migration_state, and how it is shown."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement

StateWord = Literal["done", "need_somebody", "running", "stalled", "paused", "waiting", "no_workers"]
"""A word of rowferry.migration_state."""
SHOWN: dict[str, str] = {"need_somebody": "needs an operator", "no_workers": "no workers"}
"""What people read, where it is another word; the same on the dashboards."""
DEAD_AFTER = timedelta(seconds=10)
"""A worker without a sign of life for so long counts as dead (sql/functions/begin_attempt.sql); they come every 5 s."""


@dataclass(frozen=True, slots=True)
class MigrationState:
    """A migration's state, and the time until the last of its queues is done."""

    state: StateWord
    time_left: timedelta | None
    """At the pace of the last ten minutes; None unless it is running and all its queues move."""


def read_state(connection: Connection, migration: str) -> MigrationState | None:
    """Return how a migration stands; None where it does not exist."""
    with translated_errors():
        row = connection.execute(statement("read_migration_state"), {"migration": migration}).fetchone()
    return MigrationState(**row) if row else None


def show_state(state: StateWord) -> str:
    """Return the state as people read it."""
    return SHOWN.get(state, state)
