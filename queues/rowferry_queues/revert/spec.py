"""What the queue `revert` is."""

from typing import Any

from rowferry.batch import Outcome
from rowferry.queue_spec import ROW_CHANGED, QueueChoices, QueueSpec, Words


class RevertChoices(QueueChoices, frozen=True, kw_only=True):
    """What a pass of `revert` is asked for."""

    keep_newer: bool = False
    """Whether rows stay whose production object was written after its legacy object, and differs."""

    def payload(self, *, stays: bool) -> dict[str, Any]:
        """Rows that were kept are production still, so they are read again."""
        del stays
        return {"read_again": ["kept"], **({"keep_newer": True} if self.keep_newer else {})}


REVERT = QueueSpec(
    name="revert",
    perform="rowferry_queues.revert.perform:perform",
    summary="Point rows back at their legacy objects.",
    words=Words(
        outcomes=ROW_CHANGED
        | {
            Outcome.MIGRATED: "row reverted to its legacy key",
            Outcome.KEPT: "stays production: there is no legacy object, or --keep-newer",
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
