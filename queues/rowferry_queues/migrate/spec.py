"""What the queue `migrate` is."""

from typing import Any

from rowferry.batch import READ_AGAIN, Outcome
from rowferry.plan import OnConflict
from rowferry.queue_spec import ROW_CHANGED, QueueSpec, Words
from rowferry_queues.switch import SwitchChoices


class MigrateChoices(SwitchChoices, frozen=True, kw_only=True):
    """What a pass of `migrate` is asked for."""

    on_conflict: OnConflict | None = None
    """What to do with a different production object; None: "fail", and "older" where no row moves."""

    def payload(self, *, stays: bool) -> dict[str, Any]:
        """Return the choices. Rows that stay look as before once their objects are copied, so they are read again."""
        if not stays:
            return {"on_conflict": self.on_conflict or "fail"}
        return {"on_conflict": self.on_conflict or "older", "read_again": READ_AGAIN, **self.describe_switch()}

    def replaces(self, *, stays: bool) -> bool:
        return self.payload(stays=stays)["on_conflict"] in {"older", "overwrite"}


MIGRATE = QueueSpec(
    name="migrate",
    perform="rowferry_queues.migrate.perform:perform",
    summary="Copy objects to the production bucket, and point their rows at them.",
    words=Words(
        outcomes=ROW_CHANGED
        | {
            Outcome.MIGRATED: "object copied, row updated",
            Outcome.KEPT: "an identical object was there, or was to be kept; row updated",
            Outcome.MISSING: "no legacy object",
            Outcome.CONFLICT: "a different production object exists",
            Outcome.FAILED: "any other error",
        },
        deed="objects copied {migrated}, rows updated {updated}",
    ),
    words_alone=Words(
        outcomes=ROW_CHANGED
        | {
            Outcome.MIGRATED: "object copied",
            Outcome.KEPT: "an identical object was there, or the application's own",
            Outcome.MISSING: "no object on either side",
            Outcome.CONFLICT: "a different production object exists, and it is not older",
            Outcome.FAILED: "any other error",
        },
        deed="objects copied {migrated}, equal {kept}",
    ),
    form="legacy",
    sources=frozenset({"table", "listing"}),
    sides=frozenset({"legacy", "production"}),
    choices=MigrateChoices,
    makes_passes=True,
    retries_unsettled=False,
    writes_objects=True,
    gives_form="production",
    updates_rows=True,
)
