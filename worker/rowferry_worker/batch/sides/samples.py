"""Other entries that wait: what succeeds for one of them is no fault of a side."""

from psycopg import Error

from rowferry.db.entries import make_entries
from rowferry.db.statements import statement
from rowferry.errors import MigrationFault
from rowferry.keys import map_entry, map_object
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.writes import read_and_undo

MOST = 8
"""So many other batches are looked at."""
Keys = tuple[str, str]
"""The legacy and the production key of an object."""


def sample_objects(context: BatchContext) -> list[Keys]:
    """Return an object of each of some other batches of the queue; none of those whose rows cannot be read."""
    batch = context.batch
    parameters = {"migration_id": batch.migration_id, "queue": batch.queue_name, "id": batch.id, "most": MOST}
    rows = context.connection.execute(statement("sample_batches"), parameters).fetchall()
    return [keys for row in rows for keys in _find_first(context, row["label"], row["first"], is_row=row["is_row"])]


def _find_first(context: BatchContext, label: str, first: str, *, is_row: bool) -> list[Keys]:
    """Return the first object of a batch; none where it cannot be read."""
    try:
        if not is_row:
            found = [
                map_object(first, each) for each in context.migration.plan.objects if each.label == label and first
            ]
            return [(each.legacy, each.production) for each in found]
        queries = context.migration.entries(context.connection, label)
        parameters = queries.parameters(first=first, last=first)
        read = make_entries(read_and_undo(context.connection, queries.compose_read("legacy"), parameters))
        found = [keys for entry in read for keys in map_entry(entry, queries.entries).objects[:1]]
        return [(each.legacy, each.production) for each in found]
    except (Error, MigrationFault, ValueError):
        return []
