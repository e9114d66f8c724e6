"""Counts rows that would show older bytes if they went back to their legacy objects: a sample of them is compared."""

from collections.abc import Sequence
from contextlib import suppress

from psycopg import sql

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.entries import EntryQueries, to_entries
from rowferry.keys import find_objects
from rowferry.plan import Entries, Plan
from rowferry.progress import OnProgress
from rowferry_enqueue.checks.buckets.taken_keys import MAX_COMPARED, Keys, compare_objects
from rowferry_enqueue.request import Within


def count_older(
    connection: Connection, plan: Plan, chosen: Sequence[Entries], within: Within, on_progress: OnProgress
) -> tuple[int, int]:
    """Return of how many sampled production rows the production object is newer, and how many were sampled.

    Rows that name folders are not looked at. Raises RowferryError where a table or bucket cannot be read.
    """
    rows: list[list[Keys]] = []
    for entries in chosen:
        if not entries.names_folders:
            rows += _sample(connection, entries, within, MAX_COMPARED // len(chosen))
    compared = compare_objects(plan, list(dict.fromkeys(keys for row in rows for keys in row)), on_progress)
    return sum(any(compared[keys].is_newer for keys in row) for row in rows), len(rows)


def _sample(connection: Connection, entries: Entries, within: Within, most: int) -> list[list[Keys]]:
    """Return the keys of the objects of some production rows, in both buckets."""
    with translated_errors():
        queries = EntryQueries.of(connection, entries)
        bounds = [queries.ids.compose_bound(name, values) for name, values in within.list_bounds(entries).items()]
        wanted = sql.SQL(" and ").join([queries.has_form("production"), *bounds])
        query = queries.compose("sample_entries", wanted=wanted)
        found = to_entries(connection.execute(query, queries.parameters(most=most)).fetchall())
    rows: list[list[Keys]] = []
    for entry in found:
        with suppress(ValueError):
            objects = find_objects(entry, entries)
            rows.append([(each.legacy, each.production) for each in objects if each.legacy is not None])
    return rows
