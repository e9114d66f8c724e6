"""Puts an estimate together from the plan, the sample and the measured pace. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from rowferry.batch import DEFAULT_BATCH_SIZE, Outcome
from rowferry.plan import SideName
from rowferry.s3.listings.keys import PAGE_KEYS
from rowferry_cli.estimate.dry_run import Operation
from rowferry_cli.estimate.intervals import (
    Interval,
    Stratum,
    Z,
    bound_unseen,
    estimate_share,
    estimate_totals,
    share_of_largest,
)
from rowferry_cli.estimate.sample import RequestCounts, SampledObject
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.multipart.part_size import STREAM_PART_BYTES

Share = Literal["missing", "existing", "tagged", "multipart", "in_parts"]
"""A property of entries; multipart: the legacy ETag is that of an upload in parts."""
READS = frozenset({"HeadObject", "GetObject", "GetObjectTagging", "GetObjectAcl"})
"""Operations that servers charge as reads; all others are writes."""
COLUMNS = 6
"""Of `_measure`, before those of each operation."""
NOTHING: Mapping[Operation, int] = MappingProxyType({})
LARGEST_OBJECT = 5 * 1024**4
"""Source: Amazon S3 User Guide, "Uploading objects"."""


@dataclass(frozen=True, slots=True)
class SampledTable:
    """The entries of one table: how many, and what was seen of some."""

    label: str
    count: float
    standard_error: float
    seen: Sequence[SampledObject]
    unusable: int = 0
    """Sampled keys that cannot become a production key; they are not in `seen`."""
    is_listed: bool = False
    """Whether these are objects without rows, which a listing finds."""
    in_folders: bool = False
    """Whether rows name folders, which are listed before and after their objects are copied."""
    objects_per_entry: float = 1.0

    @property
    def objects(self) -> float:
        """Return how many objects the entries have."""
        return self.count * self.objects_per_entry


@dataclass(frozen=True, slots=True)
class Totals:
    """What a migration does, without its time."""

    entries: Interval
    tables: Mapping[str, Interval]
    shares: Mapping[Share, Interval]
    sampled: int
    unusable: int
    sizes: Sequence[int]
    """Of the sampled objects that exist, in bytes."""
    copied_bytes: Interval
    egress_bytes: Interval
    later_bytes: Interval
    """What lies beyond the first part of streamed objects: a look does not read it."""
    requests: Mapping[Operation, float]
    reads: Interval
    writes: Interval
    """Requests of both sides together."""
    row_share: float

    @property
    def all_requests(self) -> Interval:
        return self.reads.plus(self.writes)

    @property
    def largest_share(self) -> float:
        """Return the share of all bytes that the largest one per cent of the sampled objects hold."""
        return share_of_largest(self.sizes)

    def requests_per_entry(self) -> dict[SideName, float]:
        """Return the requests to each side that an entry costs, on the average."""
        totals: dict[SideName, float] = {"legacy": 0.0, "production": 0.0}
        for (side, _), number in self.requests.items():
            totals[side] += number
        return {side: number / max(1.0, self.entries.estimate) for side, number in totals.items()}


def calculate_totals(
    tables: Sequence[SampledTable],
    method: CopyMethod,
    learning: Mapping[Operation, int] = NOTHING,
    *,
    condition_is_known: bool = True,
) -> Totals:
    """Return the totals of a migration by its sampled objects.

    `learning`: the requests by which a worker gets to know its servers. Without `condition_is_known`, the upper bounds
    hold for a server that ignores If-None-Match.
    """
    seen = [one for table in tables for one in table.seen]
    operations = sorted({operation for one in seen for operation in one.requests})
    strata = [
        Stratum(
            table.objects,
            table.standard_error * table.objects_per_entry,
            [_measure(one, method, operations) for one in table.seen],
        )
        for table in tables
    ]
    copied, egress, later, reads, writes, checks, *each = estimate_totals(strata, COLUMNS + len(operations))
    copied, unseen = _add_unseen(copied, tables, lambda one: one.written_bytes)
    egress, unread = _add_unseen(egress, tables, lambda one: one.egress_bytes)
    parts = unseen // method.smallest_parts
    reads, writes = reads.raised(parts if method.moves_bytes else 0), writes.raised(parts)
    once = Counter(learning)
    for table in tables:
        once += _count_listing(round(table.count)) if table.is_listed else Counter()
        once += _count_looks_into_folders(table) if table.in_folders else Counter()
    reads = reads.plus(Interval.exactly(_count_reads(once)))
    writes = writes.plus(Interval.exactly(once.total() - _count_reads(once)))
    if not condition_is_known:
        reads = reads.raised(checks.high)
    requests = {operation: total.estimate for operation, total in zip(operations, each, strict=True)}
    counts = {table.label: count_interval(table) for table in tables}
    return Totals(
        sum_intervals(list(counts.values()), tables),
        counts,
        _estimate_shares(seen, is_whole=len(seen) >= round(sum(table.objects for table in tables))),
        len(seen),
        sum(table.unusable for table in tables),
        [one.size_bytes for one in seen if one.outcome is not Outcome.MISSING],
        copied,
        egress,
        later.raised(unread),
        {operation: requests.get(operation, 0.0) + once[operation] for operation in sorted({*requests, *once})},
        reads,
        writes,
        sum(one.outcome in {Outcome.MIGRATED, Outcome.KEPT} for one in seen) / max(1, len(seen)),
    )


def _add_unseen(
    total: Interval, tables: Sequence[SampledTable], size_of: Callable[[SampledObject], int]
) -> tuple[Interval, float]:
    """Return the total with an upper bound that reckons with larger objects than were sampled, and their bytes."""
    unseen = sum(
        bound_unseen([size_of(one) for one in table.seen], table.objects, cap=LARGEST_OBJECT) for table in tables
    )
    return total.raised(unseen), unseen


def _measure(seen: SampledObject, method: CopyMethod, operations: Sequence[Operation]) -> tuple[float, ...]:
    """Return one object's bytes copied, read and beyond the first part, its reads, writes, ordinary ones, and each."""
    reads = _count_reads(seen.requests)
    return (
        seen.written_bytes,
        seen.egress_bytes,
        max(0, seen.egress_bytes - STREAM_PART_BYTES),
        reads,
        seen.requests.total() - reads,
        seen.requests["production", method.operation],
        *(seen.requests[operation] for operation in operations),
    )


def _count_listing(objects: int) -> RequestCounts:
    """Return the requests that list objects without rows: all of them once, then each range, and its first key."""
    pages, ranges = -(-objects // PAGE_KEYS), -(-objects // DEFAULT_BATCH_SIZE)
    return Counter({("legacy", "ListObjectsV2"): max(1, pages) + 2 * ranges})


def _count_looks_into_folders(table: SampledTable) -> RequestCounts:
    """Return the requests that list folders: before the copies and after them; and again where an object is asked for.

    A row with an object of which the listing does not tell whether it was rewritten is listed once more.
    """
    doubtful = sum(one.is_looked_at for one in table.seen) / max(1, len(table.seen))
    with_doubtful = 1 - (1 - doubtful) ** table.objects_per_entry
    pages = table.count + table.objects // PAGE_KEYS
    return Counter({("legacy", "ListObjectsV2"): round((2 + with_doubtful) * pages)})


def _count_reads(requests: Mapping[Operation, int]) -> int:
    return sum(number for (_, name), number in requests.items() if name in READS)


def count_interval(table: SampledTable) -> Interval:
    """Return how many entries a table has."""
    half = Z * table.standard_error
    low = max(len(table.seen) / table.objects_per_entry + table.unusable, table.count - half)
    return Interval(table.count, min(low, table.count), table.count + half)


def sum_intervals(counts: Sequence[Interval], tables: Sequence[SampledTable]) -> Interval:
    """Return the sum of independent counts."""
    total = sum(count.estimate for count in counts)
    half = Z * sum(table.standard_error**2 for table in tables) ** 0.5
    return Interval(total, max(sum(count.low for count in counts), total - half), total + half)


def _estimate_shares(seen: Sequence[SampledObject], *, is_whole: bool) -> dict[Share, Interval]:
    def share(number: int) -> Interval:
        if is_whole and seen:
            return Interval.exactly(number / len(seen))
        return estimate_share(number, len(seen))

    return {
        "missing": share(sum(one.outcome is Outcome.MISSING for one in seen)),
        "existing": share(sum(one.outcome in {Outcome.KEPT, Outcome.CONFLICT} for one in seen)),
        "tagged": share(sum(one.is_tagged for one in seen)),
        "multipart": share(sum(one.has_multipart_etag for one in seen)),
        "in_parts": share(sum(one.requests["production", "CreateMultipartUpload"] > 0 for one in seen)),
    }
