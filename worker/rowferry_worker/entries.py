"""Station 2 of 5: read the entries of a batch that are still legacy."""

from rowferry.batch import Entry
from rowferry.database import Connection
from rowferry.entry_sql import EntrySql


def read_entries(connection: Connection, entry_sql: EntrySql, first: str, last: str) -> list[Entry]:
    """Return the legacy entries with ids from `first` to `last`, both included, in the order of their ids.

    What an earlier attempt, or the application, has done meanwhile is no longer legacy: a batch may run any number
    of times.
    """
    query = entry_sql.compose("read_entries")
    rows = connection.execute(query, entry_sql.parameters(first=first, last=last))
    return [Entry(row["id"], row["key"]) for row in rows]
