"""What the queue `parts` is."""

from typing import Annotated, Literal

from msgspec import Meta

from rowferry.batch import Outcome
from rowferry.plan import QueueSettings
from rowferry.queue_spec import ROW_CHANGED, QueueChoices, QueueSpec, Words

Replaces = Literal["nothing", "own", "older"]
"""Which different production objects are replaced: none; a copy of this queue that is still as it was left; those, and
any that is older than its legacy object."""


class PartsSettings(QueueSettings, frozen=True, kw_only=True):
    """`[queue.parts]`: which objects are large, and what a later pass may replace."""

    least_bytes: Annotated[int, Meta(ge=1)] = 100 * 1024 * 1024
    """Smaller objects are left to the queue that follows."""
    part_bytes: Annotated[int, Meta(ge=5 * 1024**2, le=5 * 1024**3)] | None = None
    """The size of a part; None: 5 MiB, or 128 MiB where the production server copies by itself. Larger where an object
    would have more than 10,000 parts. Source: Amazon S3 User Guide, "Multipart upload limits"."""
    batch_parts: Annotated[int, Meta(ge=1, le=1000)] = 16
    """The most parts in a batch. What a time budget does not suffice for goes back as a batch of its own."""
    replace: Replaces | None = None
    """Which production objects a pass brings up to date; None: nothing, and "older" where no row moves."""


class PartsChoices(QueueChoices, frozen=True, kw_only=True):
    """What a pass of `parts` is asked for: nothing beside the settings."""

    def replaces(self, *, stays: bool) -> bool:
        """Return whether objects of others are replaced; what is replaced as "own" was written by this queue."""
        return stays


PARTS = QueueSpec(
    name="parts",
    perform="rowferry_queues.parts.perform:perform",
    summary="Copy large objects by parts that all workers share; a later pass sends only what has changed.",
    words=Words(
        outcomes=ROW_CHANGED
        | {
            Outcome.MIGRATED: "large object copied, or a part of it sent; the row stays as it is",
            Outcome.KEPT: "nothing to send: smaller, there already, or an unchanged part",
            Outcome.CHANGED: "the application changed the row, or the object of the part, meanwhile",
            Outcome.DELETED: "the row was deleted meanwhile, or the upload of the part has ended",
            Outcome.MISSING: "no legacy object",
            Outcome.CONFLICT: "a different production object exists",
            Outcome.FAILED: "any other error",
        },
        deed="large objects and parts copied {migrated}, nothing to send {kept}",
    ),
    form="legacy",
    sources=frozenset({"table", "listing"}),
    sides=frozenset({"legacy", "production"}),
    settings=PartsSettings,
    choices=PartsChoices,
    writes_objects=True,
)
