"""The 30 queues: `rowferry.queues` of pyproject.toml names each of them."""

from types import SimpleNamespace

from book_import.tables import SCHEMA, TABLES
from rowferry.batch import Outcome
from rowferry.queue_spec import QueueSpec, TableUse, Words

PREFIX = "import_"

WORDS = Words(
    outcomes={
        Outcome.MIGRATED: "written",
        Outcome.KEPT: "none: each item is written once",
        Outcome.CHANGED: "none",
        Outcome.DELETED: "none",
        Outcome.MISSING: "none",
        Outcome.CONFLICT: "none",
        Outcome.FAILED: "refused by the table, or its row was busy",
    },
    deed="items written {migrated}",
)


def specify(table: str) -> QueueSpec:
    """Return the queue that writes a table."""
    return QueueSpec(
        name=PREFIX + table,
        perform="book_import.perform:perform",
        summary=f"Write items into book.{table}.",
        words=WORDS,
        sources=frozenset({"items"}),
        tables=lambda _settings, _plan: (use_table(table),),
    )


def use_table(table: str) -> TableUse:
    """Return what the role of the workers must be allowed to do."""
    columns = ("name", "books", "newest")
    return TableUse(table=f"{SCHEMA}.{table}", selects=columns, inserts=columns, updates=columns)


QUEUES = SimpleNamespace(**{PREFIX + table: specify(table) for table in TABLES})
