"""Puts parts of a claimed batch back in the queue as batches of their own, in the transaction of the claim."""

from collections.abc import Sequence

from rowferry.batch import Batch, Entry
from rowferry.database import Connection, call


def split_in_halves(connection: Connection, batch: Batch, entries: Sequence[Entry], crashes: int) -> list[int]:
    """Put both halves of the entries back, each with `crashes` behind it, and return the new batches' ids.

    `entries` are in the order of their ids, two at least. The second half reaches to the end of the batch's range.
    """
    middle = (len(entries) + 1) // 2
    lower, upper = entries[:middle], entries[middle:]
    ranges = ((batch.payload["first"], lower[-1].id, lower), (upper[0].id, batch.payload["last"], upper))
    return [
        _split_off(connection, batch, (first, last), entry_count=len(half), crashes=crashes)
        for first, last, half in ranges
    ]


def put_rest_back(connection: Connection, batch: Batch, rest: Sequence[Entry], *, keep_last: str) -> int:
    """Put the rest of a batch back and return the new batch's id; the batch itself ends with id `keep_last` now."""
    new_range = (rest[0].id, batch.payload["last"])
    return _split_off(connection, batch, new_range, entry_count=len(rest), crashes=batch.crashes, keep_last=keep_last)


def _split_off(
    connection: Connection,
    batch: Batch,
    new_range: tuple[str, str],
    *,
    entry_count: int,
    crashes: int,
    keep_last: str | None = None,
) -> int:
    (row,) = call(connection, "split_off", batch.id, *new_range, entry_count, crashes, keep_last)
    return row["split_off"]
