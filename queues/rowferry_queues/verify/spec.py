"""What the queue `verify` is."""

from typing import Any, Literal

from rowferry.batch import READ_AGAIN, Outcome
from rowferry.queue_spec import ROW_CHANGED, QueueSpec, Words
from rowferry_queues.switch import SwitchChoices

Repair = Literal["nothing", "older", "all"]
"""What `verify` copies again: nothing; what is missing or older than its legacy object; all that differs."""


class VerifyChoices(SwitchChoices, frozen=True, kw_only=True):
    """What a pass of `verify` is asked for."""

    deep: bool = False
    """Read the bytes of both objects, even if their ETags are equal."""
    repair: Repair = "nothing"

    def payload(self, *, stays: bool) -> dict[str, Any]:
        del stays
        return {"deep": self.deep, "repair": self.repair, "read_again": READ_AGAIN, **self.describe_switch()}

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
