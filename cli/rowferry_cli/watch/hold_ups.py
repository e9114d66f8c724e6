"""What holds a migration up beside its state: a bound of the plan, a server that refuses requests, a replica."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from rowferry.errors import UsageError
from rowferry.formatting import format_duration
from rowferry.queues import find_queue
from rowferry_cli.watch.snapshot import Snapshot, WatchedQueue

NEARLY = 0.9
"""The part of a bound from which it is taken for what holds the rate: batches end in bursts."""


def list_hold_ups(snapshot: Snapshot, queue: WatchedQueue | None) -> Iterator[str]:
    """Yield what holds up the queue that is looked at, a line each, what stops it first.

    Nothing of a migration that is paused or done: the state says so. Where nobody works on it, only who skips it.
    """
    if queue is None or snapshot.state not in {"running", "stalled", "waiting", "no_workers"}:
        return
    if snapshot.standby_wait:
        yield f"{snapshot.standby_wait}."
    yield from (reason.brief for reason in snapshot.unusable)
    if snapshot.state not in {"running", "stalled"}:
        return
    bounds = snapshot.bounds
    lag, most = bounds.replica_lag, bounds.max_replica_lag
    if lag is not None and most is not None and lag > most:
        yield f"A replica is {format_duration(lag)} behind: the plan's max_replica_lag is {format_duration(most)}."
    yield from _list_throttled(snapshot)
    status, rows = queue.status, bounds.max_rows_per_second
    if rows is not None and _updates_rows(queue.name) and _sum_rates(snapshot) >= NEARLY * rows:
        yield f"The plan's max_rows_per_second holds it at {rows:,.12g} rows/s."
    if status.max_in_hand is not None and status.due_since and status.claimed >= status.max_in_hand:
        yield f"max_in_hand allows {status.max_in_hand:,} claimed batches of {queue.name}."


def _list_throttled(snapshot: Snapshot) -> Iterator[str]:
    """Yield a line for each operation that a server refuses at a higher rate, the slowest first."""
    rates: dict[str, list[float]] = defaultdict(list)
    for worker in snapshot.workers:
        for key, rate in worker.request_rates.items():
            rates[key] += [rate] if not worker.is_silent and _is_of_plan(key, snapshot.bounds.buckets) else []
    for key, each in sorted(rates.items(), key=lambda item: sum(item[1])):
        if each:
            where, _, operation = key.rpartition(" ")
            yield f"The server throttles {operation} to {sum(each):,.0f} requests/s: {where}"


def _is_of_plan(key: str, buckets: Sequence[str]) -> bool:
    """Return whether the rate is of a bucket of this migration: workers tell those of all migrations they work on."""
    where, _, _ = key.rpartition(" ")
    return not buckets or where.rpartition("/")[2] in buckets


def _sum_rates(snapshot: Snapshot) -> float:
    """Return the entries a second of all queues that update rows: the plan bounds them together."""
    return sum(queue.status.rate for queue in snapshot.queues if _updates_rows(queue.name))


def _updates_rows(name: str) -> bool:
    """Return whether a queue updates rows; False for one that is not installed here."""
    try:
        return find_queue(name).updates_rows
    except UsageError:
        return False
