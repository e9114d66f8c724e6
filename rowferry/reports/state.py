"""How a migration stands: the word of rowferry.migration_state, since when, why, and how it is shown."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement

StateWord = Literal["done", "need_somebody", "running", "stalled", "paused", "waiting", "no_workers"]
"""A word of rowferry.migration_state."""
SHOWN: dict[str, str] = {"need_somebody": "needs an operator", "no_workers": "no workers"}
"""What people read, where it is another word; the same on the dashboards."""
DEAD_AFTER = timedelta(seconds=10)
"""A worker without a sign of life, one every 5 s, counts as dead after so long (sql/functions/begin_attempts.sql)."""


@dataclass(frozen=True, slots=True)
class MigrationState:
    """A migration's state, and the time until the last of its queues is done."""

    state: StateWord
    time_left: timedelta | None
    """At the rate of the last ten minutes; None unless it is running and all its queues move."""
    since: datetime | None = None
    """Since when it is in this state."""
    cause: str = ""
    """What holds it, in a word of rowferry.migration_state; empty while it is running, and when all is done."""
    what_to_do: str = ""
    """The same in a sentence without a full stop, with what to type."""
    held_by: str | None = None
    """The queue that holds the end, where it has several."""
    need_somebody: int = 0
    """Entries that need an operator."""

    def describe(self, since: str) -> str:
        """Return the state, since when (in the words of the reader's clock), and what to do, for one line."""
        return describe_state(self.state, since, self.what_to_do)

    def as_document(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        return {
            "state": self.state,
            "since": self.since and self.since.isoformat(),
            "cause": self.cause,
            "what_to_do": self.what_to_do,
            "need_operator": self.need_somebody,
            "held_by": self.held_by,
            "done": self.state == "done",
            "seconds_left": None if self.time_left is None else self.time_left.total_seconds(),
        }


NOT_STORED = dict.fromkeys(MigrationState("waiting", None).as_document()) | {"done": False}
"""The same of a migration that the database does not have."""


def read_state(connection: Connection, migration: str) -> MigrationState | None:
    """Return how a migration stands; None where it does not exist."""
    with translated_errors():
        row = connection.execute(statement("read_migration_state"), {"migration": migration}).fetchone()
    return MigrationState(**row) if row else None


def describe_state(state: str, since: str, what_to_do: str) -> str:
    """Return the state, since when, and what to do, in one sentence."""
    word = show_state(state)
    return f"{word[0].upper()}{word[1:]} since {since}{f': {what_to_do}' if what_to_do else ''}."


def show_state(state: str) -> str:
    """Return the state as people read it."""
    return SHOWN.get(state, state)
