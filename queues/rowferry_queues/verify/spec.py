"""What the queue `verify` is."""

from datetime import datetime
from typing import Any, Literal

from rowferry.batch import READ_AGAIN, Outcome
from rowferry.queue_spec import ROW_CHANGED, QueueChoices, QueueSpec, Words

Repair = Literal["nothing", "older", "all"]
"""What `verify` copies again: nothing; what is missing or older than its legacy object; all that differs."""


class VerifyChoices(QueueChoices, frozen=True, kw_only=True):
    """What a pass of `verify` is asked for."""

    deep: bool = False
    """Read the bytes of both objects, even if their ETags are equal."""
    repair: Repair = "nothing"
    switched_at: datetime | None = None
    """Production objects that were written since are the application's own: those that differ are kept."""

    def payload(self, *, stays: bool) -> dict[str, Any]:
        del stays
        switched = {"switched_at": self.switched_at.isoformat()} if self.switched_at else {}
        return {"deep": self.deep, "repair": self.repair, "read_again": READ_AGAIN, **switched}

    def replaces(self, *, stays: bool) -> bool:
        del stays
        return self.repair != "nothing"


VERIFY = QueueSpec(
    name="verify",
    perform="rowferry_queues.verify.perform:perform",
    summary="Compare production objects with their legacy objects, and repair them on request.",
    words=Words(
        outcomes=ROW_CHANGED
        | {
            Outcome.MIGRATED: "missing or different, copied again",
            Outcome.KEPT: "equal, or readable without a legacy object",
            Outcome.MISSING: "no production object",
            Outcome.CONFLICT: "the production object differs",
            Outcome.FAILED: "any other error",
        },
        deed="objects compared {finished}, repaired {migrated}",
    ),
    form="production",
    sources=frozenset({"table", "listing"}),
    sides=frozenset({"legacy", "production"}),
    choices=VerifyChoices,
    needs_way_back=True,
    retries_unsettled=False,
    writes_objects=True,
)
