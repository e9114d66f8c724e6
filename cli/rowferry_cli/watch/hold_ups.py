"""What holds a migration up beside its state: a bound of the plan, a server that refuses requests, a replica."""

from collections.abc import Iterator

from psycopg.rows import DictRow

from rowferry.errors import UsageError
from rowferry.formatting import format_duration
from rowferry.queues import find_queue
from rowferry_cli.watch.snapshot import Snapshot

NEARLY = 0.9
"""The part of a bound from which it is taken for what holds the rate: batches end in bursts."""


def list_hold_ups(snapshot: Snapshot, queue: DictRow) -> Iterator[str]:
    """Yield what holds up the queue that is looked at, a line each, what stops it first.

    Nothing of a migration that is paused or done: the state says so. Where nobody works on it, only who skips it.
    """
    bounds, state = snapshot.migration, snapshot.state["state"]
    if state not in {"running", "stalled", "waiting", "no_workers"}:
        return
    if snapshot.standby_wait:
        yield f"{snapshot.standby_wait}."
    yield from (reason.brief for reason in snapshot.unusable)
    if state not in {"running", "stalled"}:
        return
    lag, most = bounds["replica_lag"], bounds["max_replica_lag"]
    if lag is not None and most is not None and lag > most:
        yield f"A replica is {format_duration(lag)} behind: the plan's max_replica_lag is {format_duration(most)}."
    for row in snapshot.throttled:
        yield f"The server throttles {row['operation']} to {row['rate']:,.0f} requests/s: {row['place']}"
    rows = bounds["max_rows_per_second"]
    updated = sum(one["rate_1m"] for one in snapshot.queues if _updates_rows(one["queue"]))
    if rows is not None and _updates_rows(queue["queue"]) and updated >= NEARLY * rows:
        yield f"The plan's max_rows_per_second holds it at {rows:,.12g} rows/s."
    most = queue["max_claimed"]
    if most is not None and queue["due_since"] and queue["claimed"] >= most:
        yield f"max_claimed allows {most:,} claimed batches of {queue['queue']}."


def _updates_rows(name: str) -> bool:
    """Return whether a queue updates rows, all of which the plan bounds together; not one that is unknown here."""
    try:
        return find_queue(name).updates_rows
    except UsageError:
        return False
