"""The queues of a migration, in the order of their chain: their rows of rowferry.queue_status."""

from psycopg.rows import DictRow

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.queues import find_queue
from rowferry_cli.status.state import show_state


def read_chain(connection: Connection, migration: str | None) -> list[DictRow]:
    """Return the queues of a migration (None: of all) that have batches or settings; none where it does not exist."""
    with translated_errors():
        return connection.execute(statement("read_queue_status"), {"migration": migration}).fetchall()


def show_queue_state(queue: DictRow, *, several: bool) -> str:
    """Return the state as people read it; of several that run, the one that sets the rate of all is the slowest."""
    is_slowest = several and queue["is_slowest"] and queue["state"] == "running"
    return "slowest" if is_slowest else show_state(queue["state"])


def find_meanings(queue: str, *, alone: bool) -> dict[str, str]:
    """Return what each outcome means for a queue; nothing for one that is not installed here.

    `alone`: of a migration without rows that move.
    """
    try:
        words = find_queue(queue).choose_words(alone=alone)
        return {str(outcome): meaning for outcome, meaning in words.outcomes.items()}
    except UsageError:
        return {}
