"""How a migration stands: its row of rowferry.migration_state, and how it is shown."""

from datetime import timedelta

from psycopg.rows import DictRow

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement

SHOWN: dict[str, str] = {"needs_operator": "needs an operator", "no_workers": "no workers"}
"""What people read of a state, where it is another word; the same on the dashboards."""
NOT_STORED: DictRow = {"state": None, "since": None, "cause": "", "what_to_do": "", "needs_operator": 0}
"""What is so of a migration that the database does not have."""
DEAD_AFTER = timedelta(seconds=10)
"""A worker without a sign of life, one every 5 s, counts as dead after so long (sql/functions/begin_attempt.sql)."""


def read_state(connection: Connection, migration: str) -> DictRow:
    """Return a migration's row of rowferry.migration_state; NOT_STORED where there is none."""
    with translated_errors():
        return connection.execute(statement("read_migration_state"), {"migration": migration}).fetchone() or NOT_STORED


def describe_state(state: DictRow, since: str) -> str:
    """Return the state, since when (in the words of the reader's clock), and what to do, in one sentence."""
    word, what_to_do = show_state(state["state"]), state["what_to_do"]
    return f"{word[0].upper()}{word[1:]} since {since}{f': {what_to_do}' if what_to_do else ''}."


def show_state(state: str) -> str:
    """Return the state of a migration or of a queue as people read it."""
    return SHOWN.get(state, state)
