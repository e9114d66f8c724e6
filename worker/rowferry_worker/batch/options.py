"""How the objects of a batch are copied: by its payload, its migration's switch and the clocks of its servers."""

import time
from typing import Any

from rowferry.db.connection import fetch_one
from rowferry.db.statements import statement
from rowferry.plan import OnConflict
from rowferry.s3.clocks import Skew
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.copying.copy import CopyOptions
from rowferry_worker.copying.precedence import NO_TIMELINE, Timeline


def choose_options(
    context: BatchContext, on_conflict: OnConflict = "fail", *, stays: bool, looks_first: bool = False
) -> CopyOptions:
    """Return how the batch's objects are copied; `stays`: no row of them moves."""
    skew = context.batch.payload.get("skew")
    return context.migration.copy_options(
        on_conflict,
        looks_first=looks_first,
        timeline=read_timeline(context) if stays else NO_TIMELINE,
        skew=None if skew is None else Skew(*skew),
        large_objects=context.large_objects(),
    )


def read_timeline(context: BatchContext) -> Timeline:
    """Return when the batch's migration was made, and when its application was switched, by time.monotonic().

    The payload says since when it may be switched in this pass. Moments are told by PostgreSQL's clock alone.
    """
    batch = context.batch
    parameters = {"migration_id": batch.migration_id, "switched_at": batch.payload.get("switched_at")}
    row: dict[str, Any] = fetch_one(context.connection, statement("read_timeline"), parameters)
    now = time.monotonic()
    at = {name: None if ago is None else now - float(ago) for name, ago in row.items()}
    first, last = at["was_switched"], at["switched_back"]
    return Timeline(at["began"], at["switched"], None if first is None or last is None else (first, last))
