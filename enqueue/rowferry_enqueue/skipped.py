"""Entries that an enqueue skips: their ids are in the ranges of batches in ERROR, which wait for a requeue."""

import shlex
from dataclasses import dataclass

from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.db.statements import statement
from rowferry.formatting import count, count_batches
from rowferry.plan import Plan
from rowferry_enqueue.enqueue import find_migration


@dataclass(frozen=True, slots=True)
class Skipped:
    """Legacy entries, and the batches in ERROR of a queue whose ranges they are in."""

    queue: str
    entries: int
    batches: int

    def describe(self, migration: str) -> str:
        """Return how many there are and what to do about them."""
        entries = count(self.entries, "legacy entry is", "legacy entries are")
        return (
            f"{entries} skipped, in the ranges of {count_batches(self.batches)} in ERROR of the queue {self.queue}. "
            f"`rowferry errors` says why; `rowferry requeue --all --migration {shlex.quote(migration)}` retries them."
        )


def find_skipped(connection: Connection, plan: Plan, queue: str) -> Skipped | None:
    """Return what the next pass of a queue over legacy entries skips; None: nothing."""
    with translated_errors(), connection.transaction():
        connection.execute(statement("lift_timeouts"))
        migration_id = find_migration(connection, plan.name)
        if migration_id is None:
            return None
        moving = [entries for entries in plan.entries if entries.rows == "move"]  # passes over others take them up
        rows = [_count(connection, EntryQueries.of(connection, entries), migration_id, queue) for entries in moving]
    skipped = Skipped(queue, sum(row.entries for row in rows), sum(row.batches for row in rows))
    return skipped if skipped.entries else None


def _count(connection: Connection, queries: EntryQueries, migration_id: int, queue: str) -> Skipped:
    query = queries.compose("count_left_alone", wanted=queries.has_form("legacy"))
    chosen = {"migration_id": migration_id, "queue": queue, "label": queries.entries.label}
    return Skipped(queue, **fetch_one(connection, query, queries.parameters(**chosen)))
