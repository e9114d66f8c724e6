"""Batches of earlier passes: waiting ones get the choice of a new pass; those in ERROR keep their entries from it."""

import shlex

from rowferry.db.connection import Connection, call, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.formatting import count_batches
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


def describe_skipped(connection: Connection, plan: Plan, queue: QueueSpec) -> str | None:
    """Return what the next pass of a queue skips, and what to do; None: nothing, as where it renews such batches."""
    settings = queue.read_settings(plan)
    if "table" not in queue.sources or "read_again" in queue.choices().payload(stays=False):
        return None
    if find_migration(connection, plan.name) is None:
        return None
    meant = [entries for entries in plan.entries if settings.means(entries.label)]
    if queue.makes_passes:  # which take up those of rows that stay
        meant = [entries for entries in meant if entries.rows == "move"]
    chosen = {"name": plan.name, "queue": queue.name, "labels": [entries.label for entries in meant]}
    with translated_errors():
        batches = fetch_one(connection, statement("count_left_behind"), chosen)["batches"]
    return (
        f"Any {queue.find_form(settings)} entries in the ranges of {count_batches(batches)} in ERROR of the "
        f"queue {queue.name} are skipped. `rowferry errors` says why; "
        f"`rowferry requeue --all --migration {shlex.quote(plan.name)}` retries them."
        if batches
        else None
    )
