"""Station 2 of 5: read the entries of a batch that (still) have the form its queue is for."""

from collections.abc import Sequence
from typing import Literal

from rowferry.batch import Entry
from rowferry.database import Connection
from rowferry.entry_sql import EntrySql

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


def find_ranges_with_work(
    connection: Connection, entry_sql: EntrySql, ranges: Sequence[tuple[str, str]], form: Form
) -> list[int]:
    """Return the positions, from 0, of those ranges of ids that hold an entry of this form; bounds are included."""
    query = entry_sql.compose("ranges_with_work", wanted=entry_sql.has_form(form))
    first, last = ([bounds[side] for bounds in ranges] for side in (0, 1))
    rows = connection.execute(query, entry_sql.parameters(first=first, last=last))
    return [row["number"] - 1 for row in rows]
