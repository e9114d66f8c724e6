"""Station 2 of 5: read the entries of a batch that (still) have the form its queue is for."""

from typing import Literal

from rowferry.batch import Entry
from rowferry.db.connection import Connection
from rowferry.db.entries import EntrySql

Form = Literal["legacy", "production"]


def read_entries(
    connection: Connection, entry_sql: EntrySql, first: str, last: str, form: Form = "legacy"
) -> list[Entry]:
    """Return the entries of one form with ids from `first` to `last`, both included, in the order of their ids.

    What an earlier attempt, or the application, has rewritten meanwhile no longer has the form: a batch may run any
    number of times.
    """
    query = entry_sql.compose("read_entries", wanted=entry_sql.has_form(form))
    rows = connection.execute(query, entry_sql.parameters(first=first, last=last))
    return [Entry(row["id"], row["key"]) for row in rows]
