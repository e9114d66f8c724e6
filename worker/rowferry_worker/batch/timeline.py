"""What a batch whose rows stay must know of its migration's switch, and of the clocks of its servers."""

import time
from collections.abc import Mapping
from typing import Any

from rowferry.db.connection import fetch_one
from rowferry.db.statements import statement
from rowferry.s3.clocks import Skew
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.objects.precedence import Timeline


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


def find_skew(payload: Mapping[str, Any]) -> Skew | None:
    """Return what was measured of the servers' clocks before the batch was enqueued; None: nothing."""
    skew = payload.get("skew")
    return None if skew is None else Skew(*skew)
