"""Pauses a migration that cannot go on without a person: after a few batches were released for it in a row."""

import logging

from rowferry.batch import Batch
from rowferry.errors import DatabaseBusy, MigrationFault, UsageError
from rowferry_worker.migration import Route
from rowferry_worker.state import Shared

_log = logging.getLogger(__name__)

FAULTS = 3
"""Batches in a row, of one worker, that a fault must have stopped before it pauses the migration."""
FAULTS_THAT_MAY_PASS = 10
"""The same for a fault that may pass by itself; with the pauses between them that is some two minutes."""


def note_fault(shared: Shared, batch: Batch, route: Route, fault: MigrationFault) -> None:
    """Count a batch that a fault of its side or table has stopped; pause its migration when there are enough."""
    route.forget_entries()
    faults = shared.backoff.note_fault(batch.migration_id)
    if faults < (FAULTS_THAT_MAY_PASS if fault.may_pass else FAULTS):
        return
    reason = str(fault).rstrip(".")
    try:
        (row,) = shared.ledger.call("pause_migration", batch.migration_id, f"{reason[0].upper()}{reason[1:]}.")
    except DatabaseBusy as error:
        _log.warning("the migration could not be paused yet", extra={"error": str(error)})
        return
    except UsageError:  # this role may not: granted by a version that did not pause
        shared.backoff.set_aside(batch.migration_id, UsageError(str(fault)))
        return
    shared.backoff.note_success(batch.migration_id)
    if row["pause_migration"]:
        name = route.plan.name
        fields = {"migration": name, "error": reason, "next": f"mend that, then run `rowferry resume {name}`"}
        _log.error("the migration is paused, since no batch of it can be worked on", extra=fields)
