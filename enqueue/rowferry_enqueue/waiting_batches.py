"""Gives batches that wait already the choice of a new pass."""

from rowferry.db.connection import Connection, call
from rowferry.plan import Plan
from rowferry.queue_spec import QueueChoices
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
