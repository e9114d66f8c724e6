"""By how much the clocks of the two servers differ: read from answers, and from objects that are written for it."""

import time
from contextlib import ExitStack, closing
from datetime import datetime, timedelta

from rowferry.errors import ObjectError
from rowferry.plan import Plan
from rowferry.s3 import operations
from rowferry.s3.client import ObjectClient, open_object_client
from rowferry.s3.clocks import (
    NO_SKEW,
    SAMPLE_EVERY,
    SAMPLES,
    ServerClock,
    Skew,
    compare_clocks,
    read_date,
    written_at,
)
from rowferry_enqueue.checks.buckets.probe import Probe, written_probe
from rowferry_enqueue.checks.finding import Finding

DEADLINE = timedelta(seconds=30)
"""Of one request."""
ANY_KEY = "rowferry-asks-for-the-time"
"""Of no object: any response tells the time."""


def measure_skew(plan: Plan, left: list[Finding], *, may_write: bool = True) -> Skew:
    """Return by how much the production server's clock is ahead of the legacy server's.

    What a server calls the time of an object may be told by another clock than its `Date`, which a proxy may set. So
    the production server's is read from a probe object, which is removed again, unless `may_write` is false. Puts in
    `left` what cannot be removed.
    """
    if plan.legacy.server == plan.production.server:
        return NO_SKEW
    legacy, production = ServerClock(), ServerClock()
    with ExitStack() as until_end:
        clients = {
            side.name: until_end.enter_context(closing(open_object_client(side, max_in_flight=1, deadline=DEADLINE)))
            for side in plan.sides
        }
        client = clients["production"]
        probe = until_end.enter_context(written_probe(client, plan.production, left))
        for number in range(SAMPLES):
            if number:
                time.sleep(SAMPLE_EVERY.total_seconds())
            sent = time.monotonic()
            legacy.note(_ask_time(clients["legacy"], "legacy"), sent, time.monotonic())
            may_write = may_write and _note_written(probe, production)
            if not may_write:
                sent = time.monotonic()
                production.note(_ask_time(client, "production"), sent, time.monotonic())
    return compare_clocks(legacy, production)


def _ask_time(client: ObjectClient, side: operations.SideName) -> datetime | None:
    """Return the `Date` of any response of a server."""
    try:
        headers = client.ask(operations.head_object(side, ANY_KEY)).headers
    except ObjectError as error:
        headers = error.headers
    return read_date(headers)


def _note_written(probe: Probe, clock: ServerClock) -> bool:
    """Write a probe, and note when that was by the server's clock; return whether that is possible."""
    sent = time.monotonic()
    try:
        probe.write_again()
        done = time.monotonic()
        clock.note(written_at(probe.ask(operations.head_object("production", probe.key))), sent, done)
    except ObjectError:
        return False
    return clock.is_known


def describe_skew(skew: Skew) -> str:
    """Return by how much the clocks differ, in words."""
    if not skew.is_known:
        return "the servers send no Date header, so the newer of two different objects cannot be determined"
    seconds, half = (skew.low + skew.high) / 2, (skew.high - skew.low) / 2
    where = "ahead of" if seconds > 0 else "behind"
    by = f"{abs(seconds):,.1f} s {where} the legacy server's, give or take {half:.1f} s"
    return f"the production server's clock is {by}; times of objects are compared by that"
