"""Batches of earlier passes: waiting ones get the choice of a new pass; those in ERROR keep their entries from it."""

import shlex
from dataclasses import dataclass

from rowferry.db.connection import Connection, call, fetch_one, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.db.statements import statement
from rowferry.formatting import count, count_batches
from rowferry.keys import Form
from rowferry.plan import Plan
from rowferry.queue_spec import QueueChoices, QueueSpec
from rowferry_enqueue.enqueue import find_migration, translated_refusals


def choose_on_conflict(connection: Connection, plan: Plan, choices: QueueChoices | None) -> int:
    """Let waiting batches do with a different production object what a pass was asked for; return how many change.

    Changes none where the pass was asked for nothing. Raises UsageError where the application may have been switched.
    """
    on_conflict = getattr(choices, "on_conflict", None)
    migration_id = None if on_conflict is None else find_migration(connection, plan.name)
    if migration_id is None:
        return 0
    with translated_refusals():
        (row,) = call(connection, "choose_on_conflict", on_conflict, migration_id)
    return int(row["choose_on_conflict"])


@dataclass(frozen=True, slots=True)
class Skipped:
    """Entries of one form, and the batches in ERROR of a queue whose ranges they are in."""

    queue: str
    form: str
    entries: int
    batches: int

    def describe(self, migration: str) -> str:
        """Return how many there are and what to do about them."""
        entries = count(self.entries, f"{self.form} entry is", f"{self.form} entries are")
        return (
            f"{entries} skipped, in the ranges of {count_batches(self.batches)} in ERROR of the queue {self.queue}. "
            f"`rowferry errors` says why; `rowferry requeue --all --migration {shlex.quote(migration)}` retries them."
        )


def find_skipped(connection: Connection, plan: Plan, queue: QueueSpec) -> Skipped | None:
    """Return what the next pass of a queue skips; None: nothing, as of a queue that renews its batches in ERROR."""
    settings = queue.read_settings(plan)
    if "table" not in queue.sources or "read_again" in queue.choices().payload(stays=False):
        return None
    with translated_errors(), connection.transaction():
        connection.execute(statement("lift_timeouts"))
        migration_id = find_migration(connection, plan.name)
        if migration_id is None:
            return None
        meant = [entries for entries in plan.entries if settings.means(entries.label)]
        if queue.makes_passes:  # which take up those of rows that stay
            meant = [entries for entries in meant if entries.rows == "move"]
        form = queue.find_form(settings)
        tables = [EntryQueries.of(connection, entries) for entries in meant]
        rows = [_count(connection, queries, migration_id, queue.name, form) for queries in tables]
    skipped = Skipped(queue.name, form, sum(row.entries for row in rows), sum(row.batches for row in rows))
    return skipped if skipped.entries else None


def _count(connection: Connection, queries: EntryQueries, migration_id: int, queue: str, form: Form) -> Skipped:
    query = queries.compose("count_left_alone", wanted=queries.has_form(form))
    chosen = {"migration_id": migration_id, "queue": queue, "label": queries.entries.label}
    return Skipped(queue, form, **fetch_one(connection, query, queries.parameters(**chosen)))
