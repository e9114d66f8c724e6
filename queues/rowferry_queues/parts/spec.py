"""What the queue `parts` is."""

from typing import Annotated, Literal

from msgspec import Meta

from rowferry.batch import Outcome
from rowferry.plan import QueueSettings
from rowferry.queue_spec import ROW_CHANGED, QueueSpec, Words


class PartsSettings(QueueSettings, frozen=True, kw_only=True):
    """`[queue.parts]`: which objects are large, and what a later pass may replace."""

    least_bytes: Annotated[int, Meta(ge=1)] = 100 * 1024 * 1024
    """Smaller objects are left to the queue that follows."""
    part_bytes: Annotated[int, Meta(ge=5 * 1024**2, le=5 * 1024**3)] | None = None
    """The size of a part; None: 5 MiB, or 128 MiB where the production server copies by itself. Larger where an object
    would have more than 10,000 parts. Source: Amazon S3 User Guide, "Multipart upload limits"."""
    batch_parts: Annotated[int, Meta(ge=1, le=1000)] = 16
    """The most parts in a batch. What a time budget does not suffice for goes back as a batch of its own."""
    replace: Literal["nothing", "own"] | None = None
    """Which production objects a pass brings up to date: copies of ours that are still as they were left, or none.
    None: "own" where no row moves, else "nothing"."""


PARTS = QueueSpec(
    name="parts",
    perform="rowferry_queues.parts.perform:perform",
    summary="Copy large objects by parts that all workers share; a later pass sends only what has changed.",
    words=Words(
        outcomes=ROW_CHANGED
        | {
            Outcome.MIGRATED: "large object copied, or a part of it sent; the row stays as it is",
            Outcome.KEPT: "nothing to send: smaller, there already, or an unchanged part",
            Outcome.CHANGED: "the application changed the row meanwhile, or the upload of the part has ended",
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
    writes_objects=True,
)
