"""Something else answers in the place of an S3 server, in the middle of the work: nothing is held against an object."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from support.processes.processes import wait_for
from support.s3.request_log import LoggedRequest
from torture.bad_s3 import BadS3
from torture.run import Run
from torture.world import World

WHAT = "a login page, a balancer's errors, a captive portal, garbage or a failing write path answer in S3's place"

FAULTS = frozenset({"outages"})

SEATS = 2
HELD_AGAINST = """
select (select count(*) from rowferry.batch_queue where status = 'ERROR')::int
    + (select coalesce(sum(attempts), 0) from rowferry.batch_queue where status = 'INIT')::int as held_against
"""
REASONS = "select distinct error from rowferry.batch_queue where error is not null limit 5"
RELEASED = "select count(*)::int from rowferry.batch_attempt where verdict = 'RELEASED'"
DONE = "select count(*)::int from rowferry.batch_queue where status = 'DONE'"
STATE = "select state || coalesce(': ' || pause_reason, '') from rowferry.migration_state"
WITHIN = timedelta(seconds=180)

PAGE = b"<html><body>Please log in.</body></html>"


def page(status: str, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\n{more}Content-Type: text/html\r\nContent-Length: {len(PAGE)}\r\n\r\n"
    return head.encode() + PAGE


def everything(_: LoggedRequest) -> bool:
    return True


def writes(seen: LoggedRequest) -> bool:
    return seen.writes_object


class Outage(NamedTuple):
    """What is answered, and to what."""

    matches: Callable[[LoggedRequest], bool]
    answer: bytes


ERROR = b"<Error><Code>InternalError</Code><Message>as told</Message></Error>"
OUTAGES = {
    "302 to a login page": Outage(everything, page("302 Found", "Location: https://login.example.com/\r\n")),
    "405 to writes": Outage(writes, page("405 Not Allowed")),
    "400 of a balancer": Outage(everything, page("400 Bad Request")),
    "502 of a balancer": Outage(everything, page("502 Bad Gateway")),
    "500 to writes": Outage(writes, b"HTTP/1.1 500 Oops\r\nContent-Length: %d\r\n\r\n" % len(ERROR) + ERROR),
    "captive portal": Outage(everything, page("200 OK")),
    "garbage": Outage(everything, b"220 mail.example.com ESMTP ready\r\n\r\n"),
}
SHORT = ("302 to a login page", "500 to writes")


def torture(run: Run) -> None:
    """Let each outage last for a while, and see that nothing is charged and that work goes on."""
    seconds, names = (4, SHORT) if run.short else (60, tuple(OUTAGES))
    with run.world() as world, BadS3(world.s3.endpoint_url, 0, {}).running() as s3:
        world.migration.reach_through(s3.endpoint_url)
        world.fill(300, large=1)
        world.enqueue(10)
        s3.delay = timedelta(seconds=0.02)
        with world.workers(SEATS, "--parallel=4") as pool:
            for name in names:
                run.say(name)
                run.say(f"{name}: {endure(world, s3, OUTAGES[name], seconds)}")
                run.faults["outages"] += 1
            run.say("waiting for the rest")
            world.wait_until_done()
            world.end_alive(pool, SEATS)
        world.run_final_checks()


def endure(world: World, s3: BadS3, outage: Outage, seconds: int) -> str:
    """Have an outage in the middle of the work; return what it cost, in words."""
    keep_busy(world, at_least=1)
    released, before = world.ask(RELEASED), s3.counts["answered by something else"]
    s3.outage = outage
    try:
        wait_for(lambda: s3.counts["answered by something else"] > before, deadline=WITHIN)
        time.sleep(seconds)
        state, held = world.ask(STATE), world.ask(HELD_AGAINST)
        reasons = world.query(REASONS)
    finally:
        s3.outage = None
    if held:
        world.auditor.report(f"{held} batches or attempts were held against objects: {reasons}")
    done, ended = world.ask(DONE), time.monotonic()
    wait_for(lambda: world.ask(DONE) > done, deadline=WITHIN)
    lost = world.ask(RELEASED) - released
    return f"{held} held, {lost} released in {seconds} s, went on after {time.monotonic() - ended:.1f} s; state {state}"


def keep_busy(world: World, *, at_least: int) -> None:
    """Return while batches are worked on and many wait."""
    if world.waiting() < 20 * SEATS:
        world.fill(400, large=0)
        world.enqueue(10)
    done = world.ask(DONE)
    wait_for(lambda: world.ask(DONE) >= done + at_least, deadline=WITHIN)
