"""What the queue `revert` is."""

from typing import Any

from rowferry.batch import Outcome
from rowferry.queue_spec import ROW_CHANGED, QueueChoices, QueueSpec, Words


class RevertChoices(QueueChoices, frozen=True, kw_only=True):
    """A pass of `revert` is asked for nothing else."""

    def payload(self, *, stays: bool) -> dict[str, Any]:
        """Rows that were kept are production still, so they are read again."""
        del stays
        return {"read_again": ["kept"]}


REVERT = QueueSpec(
    name="revert",
    perform="rowferry_queues.revert.perform:perform",
    summary="Point rows back at their legacy objects.",
    words=Words(
        outcomes=ROW_CHANGED
        | {
            Outcome.MIGRATED: "row reverted to its legacy key",
            Outcome.KEPT: "stays production: there is no legacy object",
            Outcome.MISSING: "no legacy object",
            Outcome.CONFLICT: "does not occur",
            Outcome.FAILED: "the database or the server refused",
        },
        deed="rows reverted {migrated}",
    ),
    form="production",
    sides=frozenset({"legacy", "production"}),
    choices=RevertChoices,
    needs_way_back=True,
    retries_unsettled=False,
    gives_form="legacy",
    updates_rows=True,
)
