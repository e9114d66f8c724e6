"""Puts an estimate together from the plan, the sample and the measured pace. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rowferry.plan import SideName
from rowferry_cli.estimate.bounds import Projection
from rowferry_cli.estimate.intervals import (
    Interval,
    Stratum,
    Z,
    bound_unseen,
    estimate_share,
    estimate_totals,
    share_of_largest,
)
from rowferry_cli.estimate.request_counts import (
    CopyMode,
    Operation,
    RequestCounts,
    SampledObject,
    bytes_read,
    bytes_written,
    count_listing,
    count_overhead,
    count_requests,
)
from rowferry_worker.copying.transfer import COPY_PART_BYTES, SMALLEST_PART_BYTES

Share = Literal["missing", "existing", "tagged", "multipart", "in_parts"]
"""A property of entries; multipart: the legacy ETag is that of an upload in parts."""
READS = frozenset({"HeadObject", "GetObject", "GetObjectTagging", "GetObjectAcl"})
"""Operations that servers charge as reads; all others are writes."""
GIGABYTE = 10**9
"""Traffic is charged by it."""
COLUMNS = 6
"""Of `_measure`."""
LARGEST_OBJECT = 5 * 1024**4
"""Source: Amazon S3 User Guide, "Uploading objects"."""
SIZE_CLASSES = (4 * 1024, 64 * 1024, 1024**2, 8 * 1024**2, 64 * 1024**2, 1024**3)
"""Upper bounds of the size classes in bytes, inclusive; the last class has none."""


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
    objects_per_entry: float = 1.0

    @property
    def objects(self) -> float:
        """Return how many objects the entries have."""
        return self.count * self.objects_per_entry


@dataclass(frozen=True, slots=True)
class Prices:
    """What the user says that the providers charge; None: unknown."""

    egress: float | None = None
    """A gigabyte (10^9 bytes) that leaves the legacy provider."""
    reads: float | None = None
    """A thousand reads (GET, HEAD), on either side."""
    writes: float | None = None
    """A thousand writes (PUT, COPY, POST)."""


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


def calculate_totals(tables: Sequence[SampledTable], mode: CopyMode, *, condition_is_known: bool = True) -> Totals:
    """Return the totals of a migration by its sampled objects.

    Without `condition_is_known`, the upper bounds hold for a server that ignores If-None-Match.
    """
    seen = [one for table in tables for one in table.seen]
    strata = [
        Stratum(
            table.objects,
            table.standard_error * table.objects_per_entry,
            [_measure(one, mode) for one in table.seen],
        )
        for table in tables
    ]
    copied, egress, later, reads, writes, checks = estimate_totals(strata, COLUMNS)
    copied, unseen = _add_unseen(copied, tables, bytes_written)
    egress, unread = _add_unseen(egress, tables, lambda one: bytes_read(one, mode))
    later = later.raised(0 if mode.server_side else unread)
    parts = unseen // COPY_PART_BYTES if mode.server_side else unread // min(mode.part_bytes, SMALLEST_PART_BYTES)
    reads, writes = reads.raised(0 if mode.server_side else parts), writes.raised(parts)
    objects = round(sum(table.objects for table in tables))
    overhead = _count_overhead(seen, objects, mode)
    for table in tables:
        overhead += count_listing(round(table.count)) if table.is_listed else Counter()
    reads = reads.plus(Interval.exactly(_count_reads(overhead)))
    writes = writes.plus(Interval.exactly(overhead.total() - _count_reads(overhead)))
    if not condition_is_known:
        reads = reads.raised(checks.high)
    counts = {table.label: count_interval(table) for table in tables}
    sizes = [one.size_bytes for one in seen if not one.is_missing]
    return Totals(
        sum_intervals(list(counts.values()), tables),
        counts,
        _estimate_shares(seen, mode, is_whole=len(seen) >= objects),
        len(seen),
        sum(table.unusable for table in tables),
        sizes,
        copied,
        egress,
        later,
        _estimate_requests(tables, mode, overhead),
        reads,
        writes,
        sum(not one.is_missing and one.existing in {"none", "identical"} for one in seen) / max(1, len(seen)),
    )


def _add_unseen(
    total: Interval, tables: Sequence[SampledTable], size_of: Callable[[SampledObject], int]
) -> tuple[Interval, float]:
    """Return the total with an upper bound that reckons with larger objects than were sampled, and their bytes."""
    unseen = sum(
        bound_unseen([size_of(one) for one in table.seen], table.objects, cap=LARGEST_OBJECT) for table in tables
    )
    return total.raised(unseen), unseen


def _measure(seen: SampledObject, mode: CopyMode) -> tuple[float, ...]:
    """Return one object's bytes copied, read and beyond the first part, its reads, writes and ordinary writes."""
    requests = count_requests(seen, mode)
    reads = _count_reads(requests)
    egress = bytes_read(seen, mode)
    return (
        bytes_written(seen),
        egress,
        0 if mode.server_side else max(0, egress - mode.part_bytes),
        reads,
        requests.total() - reads,
        requests["production", mode.write],
    )


def _count_overhead(seen: Sequence[SampledObject], entries: int, mode: CopyMode) -> RequestCounts:
    """Return the requests that are not those of any object; none where nothing is copied."""
    if not any(one.is_copied for one in seen):
        return Counter()
    return count_overhead(entries, mode, any_tagged=any(one.tags for one in seen))


def _count_reads(requests: RequestCounts) -> int:
    return sum(number for (_, name), number in requests.items() if name in READS)


def _estimate_requests(
    tables: Sequence[SampledTable], mode: CopyMode, overhead: RequestCounts
) -> dict[Operation, float]:
    """Return the requests of all entries, by operation, and those of `overhead`."""
    counted = [[count_requests(one, mode) for one in table.seen] for table in tables]
    operations = sorted({operation for counts in counted for one in counts for operation in one})
    strata = [
        Stratum(table.objects, 0.0, [tuple(one[operation] for operation in operations) for one in counts])
        for table, counts in zip(tables, counted, strict=True)
    ]
    totals = estimate_totals(strata, len(operations))
    requests = {operation: total.estimate for operation, total in zip(operations, totals, strict=True)}
    for operation, number in overhead.items():
        requests[operation] = requests.get(operation, 0.0) + number
    return requests


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


def _estimate_shares(seen: Sequence[SampledObject], mode: CopyMode, *, is_whole: bool) -> dict[Share, Interval]:
    def share(number: int) -> Interval:
        if is_whole and seen:
            return Interval.exactly(number / len(seen))
        return estimate_share(number, len(seen))

    creates = ("production", "CreateMultipartUpload")
    return {
        "missing": share(sum(one.is_missing for one in seen)),
        "existing": share(sum(one.existing != "none" for one in seen)),
        "tagged": share(sum(one.tags > 0 for one in seen)),
        "multipart": share(sum(one.has_multipart_etag for one in seen)),
        "in_parts": share(sum(count_requests(one, mode)[creates] > 0 for one in seen)),
    }


def estimate_seconds(work: Totals, projection: Projection, bytes_per_second: float) -> Interval:
    """Return how long the migration takes: its entries at their pace, and the rest of large objects at theirs."""
    pace, entries = projection.entries_per_second, work.entries
    if not entries.high:
        return Interval.exactly(0.0)
    later = work.later_bytes.times(1 / bytes_per_second) if bytes_per_second else Interval.exactly(0.0)

    def divide(number: float, rate: float) -> float:
        return number / rate if rate else float("inf")

    return Interval(
        divide(entries.estimate, pace.estimate) + later.estimate,
        divide(entries.low, pace.high) + later.low,
        divide(entries.high, pace.low) + later.high,
    )


def calculate_costs(work: Totals, prices: Prices) -> dict[Literal["egress", "reads", "writes"], Interval]:
    """Return what is charged, as far as prices are given, in their currency."""
    costs: dict[Literal["egress", "reads", "writes"], Interval] = {}
    if prices.egress is not None:
        costs["egress"] = work.egress_bytes.times(prices.egress / GIGABYTE)
    if prices.reads is not None:
        costs["reads"] = work.reads.times(prices.reads / 1000)
    if prices.writes is not None:
        costs["writes"] = work.writes.times(prices.writes / 1000)
    return costs


def classify_sizes(sizes: Sequence[int]) -> list[tuple[int | None, int, int]]:
    """Return, by size class, its upper bound in bytes (None: none), its number of objects and their bytes."""
    classes: list[tuple[int | None, int, int]] = []
    least = -1
    for most in (*SIZE_CLASSES, None):
        found = [size for size in sizes if size > least and (most is None or size <= most)]
        classes.append((most, len(found), sum(found)))
        least = most if most is not None else least
    return classes
