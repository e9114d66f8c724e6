"""What bounds the pace of a migration, and whether more workers would change it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rowferry.plan import Plan, SideName
from rowferry_cli.estimate.dry_run import Operation
from rowferry_cli.estimate.intervals import Interval
from rowferry_cli.estimate.readings import Measurement

REFUSED = 0.005
"""The share of refused requests from which a server's rate limit counts as reached; the worker paces itself below."""
BUSY_CORES = 0.85
"""A process that uses so much of a core has no more to give: its event loop is one thread."""
SLOWER_RATIO = 1.5
"""Requests that take so many times longer than at the beginning are said to."""
AT_LIMIT = 0.9
LEAST_SECONDS = 2.0
"""A shorter measurement says nothing of what a server bears."""
UNMEASURED_WRITES = 2.0
"""Without --copy, the slowest case that is reckoned with: writes take as long again as what was measured."""
QUEUE_SPREAD = 1.25
"""The pace of one minute may be off by this factor."""

Cause = Literal[
    "queue", "plan_requests", "plan_rows", "server_rate", "cpu", "latency", "saturation", "short_measurement"
]


@dataclass(frozen=True, slots=True)
class Bound:
    """What holds a migration back."""

    cause: Cause
    sentence: str
    """Without its full stop."""
    more_workers_help: bool
    side: SideName | None = None


@dataclass(frozen=True, slots=True)
class Projection:
    """The pace that a migration may be expected to have."""

    entries_per_second: Interval
    bound: Bound


def project(
    plan: Plan, measured: Measurement, requests_per_entry: Mapping[SideName, float], row_share: float, processes: int
) -> Projection:
    """Return the pace of a migration by so many processes.

    `requests_per_entry`: those of a worker; `row_share`: the share of entries whose row is rewritten.
    """
    bound = _find_bound(measured)
    pace = measured.entries_per_second
    # Whether a server, or the network, bears the requests of all processes was not measured.
    if bound.more_workers_help:
        pace = Interval(pace.estimate * processes, pace.low, pace.high * processes)
    elif bound.cause == "saturation":
        pace = Interval(pace.estimate, pace.low, pace.high * processes)
    if not measured.copied:
        pace = Interval(pace.estimate, pace.low / UNMEASURED_WRITES, pace.high)
    for limit, cap in _find_caps(plan, requests_per_entry, row_share):
        if cap < pace.estimate:
            bound = limit
        pace = Interval(min(pace.estimate, cap), min(pace.low, cap), min(pace.high, cap))
    return Projection(pace, bound)


def follow_queue(entries_per_second: float, workers: int) -> Projection:
    """Return the pace that the queue has now, rows and PostgreSQL included."""
    words = "process" if workers == 1 else "processes"
    sentence = f"what {workers:,} worker {words} do now, {entries_per_second:,.0f} entries/s in the last minute"
    pace = Interval(entries_per_second, entries_per_second / QUEUE_SPREAD, entries_per_second * QUEUE_SPREAD)
    return Projection(pace, Bound("queue", sentence, more_workers_help=True))


def _find_caps(plan: Plan, requests_per_entry: Mapping[SideName, float], row_share: float) -> list[tuple[Bound, float]]:
    """Return what the plan itself allows, in entries per second."""
    caps: list[tuple[Bound, float]] = []
    for side in (plan.legacy, plan.production):
        needed, most = requests_per_entry.get(side.name, 0.0), side.max_requests_per_second
        if most is not None and needed:
            words = f"the plan's max_requests_per_second = {most:g} of [{side.name}]"
            caps.append((Bound("plan_requests", words, more_workers_help=False, side=side.name), most / needed))
    rows = plan.database.max_rows_per_second
    if rows is not None and row_share:
        words = f"the plan's max_rows_per_second = {rows:g}"
        caps.append((Bound("plan_rows", words, more_workers_help=False), rows / row_share))
    return caps


def _find_bound(measured: Measurement) -> Bound:
    held_back = measured.held_back
    refused = {one: share for one, share in measured.refused.items() if share > REFUSED or one in held_back}
    if refused:
        side, operation = max(refused, key=lambda one: refused[one])
        return _describe_refusals(measured, side, operation)
    if measured.cpu_cores >= BUSY_CORES:
        words = f"this machine's CPU, of which one process used {measured.cpu_cores:.2f} cores"
        return Bound("cpu", words, more_workers_help=True)
    if measured.seconds < LEAST_SECONDS or measured.is_rising:
        return _describe_shortness(measured)
    if measured.in_flight < AT_LIMIT * measured.most_in_flight:
        return _describe_saturation(measured)
    return _describe_latency(measured)


def _describe_refusals(measured: Measurement, side: SideName, operation: str) -> Bound:
    allowed = measured.requests_per_second.get((side, operation), 0.0)
    words = f"the {side} server's rate limit, which lets {allowed:,.0f} {operation}/s through"
    return Bound("server_rate", words, more_workers_help=False, side=side)


def _describe_shortness(measured: Measurement) -> Bound:
    words = f"the shortness of the measurement, {measured.objects:,} objects in {measured.seconds:.1f} s"
    if measured.is_rising:
        words += ", at whose end the pace still rose"
    return Bound("short_measurement", words, more_workers_help=True)


def _describe_saturation(measured: Measurement) -> Bound:
    """Return the bound of a worker that has found out that more objects in flight do not pay."""
    slowest = _find_slowest(measured)
    if slowest is None:
        return Bound("saturation", "a server, or the link to it", more_workers_help=False)
    side, operation = slowest
    first, last = measured.first_latency_seconds.get(slowest, 0.0), measured.last_latency_seconds[slowest]
    took = f"took {_milliseconds(first)} at first and takes {_milliseconds(last)}"
    if last <= SLOWER_RATIO * first:
        took = f"takes {_milliseconds(last)}"
    words = (
        f"the {side} server or the link to it, where {operation} {took}, "
        f"and more than {measured.in_flight:,} objects in flight made it no faster"
    )
    return Bound("saturation", words, more_workers_help=False, side=side)


def _describe_latency(measured: Measurement) -> Bound:
    slowest = _find_slowest(measured)
    if slowest is None:
        return Bound("latency", "the servers' latency", more_workers_help=True)
    side, operation = slowest
    took = _milliseconds(measured.last_latency_seconds[slowest])
    words = (
        f"the {side} server's latency, since {operation} takes {took}, "
        f"and by one process's limit of {measured.in_flight:,} objects in flight"
    )
    return Bound("latency", words, more_workers_help=True, side=side)


def _find_slowest(measured: Measurement) -> Operation | None:
    """Return the operation that takes longest."""
    took = measured.last_latency_seconds
    return max(took, key=lambda one: took[one], default=None)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms" if seconds < 0.01 else f"{seconds * 1000:,.0f} ms"
