"""The whole estimate as data, and as a document for scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite
from typing import Any, Literal

from rowferry.batch import DEFAULT_BATCH_SIZE
from rowferry.plan import Plan
from rowferry_cli.estimate.bounds import Projection
from rowferry_cli.estimate.intervals import Interval
from rowferry_cli.estimate.readings import Measurement
from rowferry_cli.estimate.totals import Totals
from rowferry_worker.options import Options
from rowferry_worker.slots import bound_slots

IN_HAND = 2
"""A worker claims entries until it has so many times as many as objects in flight."""
GIGABYTE = 10**9
"""Traffic is charged by it."""
SIZE_CLASSES = (4 * 1024, 64 * 1024, 1024**2, 8 * 1024**2, 64 * 1024**2, 1024**3)
"""Upper bounds of the size classes in bytes, inclusive; the last class has none."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What the user says that the providers charge; None: unknown."""

    egress: float | None = None
    """A gigabyte (10^9 bytes) that leaves the legacy provider."""
    reads: float | None = None
    """A thousand reads (GET, HEAD), on either side."""
    writes: float | None = None
    """A thousand writes (PUT, COPY, POST)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What `rowferry estimate` shows."""

    plan: Plan
    work: Totals
    processes: int
    prices: Prices
    measurement: Measurement | None
    projection: Projection | None
    """None: no pace could be measured."""
    outcomes: Mapping[str, int]
    """Of the objects that were to be copied."""
    assumptions: tuple[str, ...]
    next_command: str
    server_connections: int | None = None
    """Those that PostgreSQL has for all roles together; None: unknown."""

    @property
    def seconds(self) -> Interval | None:
        """Return the time that the migration takes; None without a pace."""
        if self.projection is None:
            return None
        pace = 0.0 if self.measurement is None else self.measurement.bytes_per_second
        return estimate_seconds(self.work, self.projection, pace)

    @property
    def connections(self) -> dict[str, int]:
        """Return the connections of all processes, at most; to PostgreSQL one for each batch and ledger."""
        in_flight = 0 if self.measurement is None else self.measurement.in_flight
        batches = ceil(IN_HAND * in_flight / DEFAULT_BATCH_SIZE) + 1
        slots = min(batches, bound_slots(Options().max_batches, self.server_connections, self.processes))
        return {
            "legacy": 0 if self.plan.server_side else in_flight * self.processes,
            "production": in_flight * self.processes,
            "postgresql": (slots + 1) * self.processes,
        }

    def as_document(self) -> dict[str, Any]:
        """Return the estimate as plain data, for JSON; each range has `estimate`, `low` and `high`."""
        work = self.work
        costs = calculate_costs(work, self.prices)
        total = Interval.exactly(0.0)
        for cost in costs.values():
            total = total.plus(cost)
        return {
            "migration": self.plan.name,
            "transfer": "server" if self.plan.server_side else "stream",
            "processes": self.processes,
            "entries": {**_whole(work.entries), "tables": {name: _whole(one) for name, one in work.tables.items()}},
            "sample": self._describe_sample(),
            "bytes": _whole(work.copied_bytes),
            "egress_bytes": _whole(work.egress_bytes),
            "requests": {
                "total": _whole(work.all_requests),
                "reads": _whole(work.reads),
                "writes": _whole(work.writes),
                "legacy": _by_operation(work, "legacy"),
                "production": _by_operation(work, "production"),
            },
            "seconds": self.seconds and _range(self.seconds),
            "entries_per_second": self.projection and _range(self.projection.entries_per_second),
            "bound": self.projection
            and {
                "cause": self.projection.bound.cause,
                "side": self.projection.bound.side,
                "sentence": self.projection.bound.sentence,
                "more_workers_help": self.projection.bound.more_workers_help,
            },
            "measured": self._describe_measurement(),
            "connections": self.connections,
            "costs": {**{name: _range(cost) for name, cost in costs.items()}, "total": _range(total)}
            if costs
            else None,
            "assumptions": list(self.assumptions),
            "next": self.next_command,
        }

    def _describe_sample(self) -> dict[str, Any]:
        work = self.work
        return {
            "objects": work.sampled,
            "unusable_keys": work.unusable,
            "shares": {name: _range(share) for name, share in work.shares.items()},
            "sizes": [
                {"up_to_bytes": most, "objects": number, "bytes": size}
                for most, number, size in classify_sizes(work.sizes)
            ],
            "largest_share": work.largest_share,
        }

    def _describe_measurement(self) -> dict[str, Any] | None:
        found = self.measurement
        if found is None:
            return None
        names = {one: f"{one[0]} {one[1]}" for one in found.requests_per_second}
        return {
            "seconds": found.seconds,
            "objects": found.objects,
            "copied": found.copied,
            "interrupted": found.is_interrupted,
            "entries_per_second": _range(found.entries_per_second),
            "bytes_per_second": found.bytes_per_second,
            "cpu_cores": found.cpu_cores,
            "in_flight": found.in_flight,
            "requests_per_second": {names[one]: rate for one, rate in found.requests_per_second.items()},
            "refused": {f"{one[0]} {one[1]}": share for one, share in found.refused.items()},
            "latency_seconds": {f"{one[0]} {one[1]}": took for one, took in found.last_latency_seconds.items()},
            "outcomes": dict(self.outcomes),
        }


def _by_operation(work: Totals, side: str) -> dict[str, int]:
    return {operation: round(number) for (name, operation), number in sorted(work.requests.items()) if name == side}


def _whole(interval: Interval) -> dict[str, int]:
    return {"estimate": round(interval.estimate), "low": round(interval.low), "high": round(interval.high)}


def _range(interval: Interval) -> dict[str, float | None]:
    """Return the three numbers; None for one that is without end, which JSON does not know."""
    numbers = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
    return {name: number if isfinite(number) else None for name, number in numbers.items()}


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
