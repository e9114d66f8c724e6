"""Something else answers in the place of S3: nothing is held against an object, and work goes on by itself."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NamedTuple

from support.entries.entry_table import TO
from support.processes.processes import wait_for
from support.s3.request_log import LoggedRequest, from_first
from torture.bad_s3 import BadS3
from torture.final_checks import Expected
from torture.outages import OUTAGES, Outage
from torture.run import Run
from torture.world import World

WHAT = "a login page, a balancer's errors, a captive portal, garbage or a failing write path answer in S3's place"

FAULTS = frozenset({"outages"})
ANSWERED = "answered by something else"

LONGEST = timedelta(minutes=50)
"""Nine outages of a minute, in three forms."""

SEATS, BATCH = 2, 10
SOME, MANY = 20 * SEATS, 400
"""Batches that have to wait when an outage begins, and entries that are added for that."""
WITHIN = timedelta(seconds=180)

COST = """
select coalesce(sum(failed) filter (where status = 'ERROR'), 0)::int as failed,
    coalesce(sum(case status when 'INIT' then attempts else greatest(attempts - 1, 0) end), 0)::int as charged
from rowferry.batch_queue
"""
SAID = """
select concat_ws(': ', max(m.state), max(m.pause_reason), (
    select b.error from rowferry.batch_queue as b
    where b.status = 'INIT' and b.error is not null group by 1 order by count(*) desc limit 1
)) from rowferry.migration_state as m
"""
RELEASED = "select count(*)::int from rowferry.batch_attempt where verdict = 'RELEASED'"
DONE = "select count(*)::int from rowferry.batch_queue where status <> 'INIT'"


class Form(NamedTuple):
    """When an outage begins."""

    begins: Callable[[LoggedRequest], bool]
    """At the first request that fits."""
    fresh_workers: bool = False
    """Whether the workers begin with it, so that they have seen nothing succeed."""
    lacking: int = 0
    """Each so many entries one has no object."""


def writes_late(seen: LoggedRequest) -> bool:
    """Return whether an entry in the middle of its batch is written: by four at a time, others have been before."""
    number = seen.key.removeprefix(f"{TO}u").partition("/")[0]
    return seen.writes_object and number.isdecimal() and int(number) % BATCH == BATCH - 3


FORMS: Mapping[str, Form] = {
    "from the first write": Form(lambda seen: seen.writes_object, fresh_workers=True),
    "from mid-batch": Form(writes_late),
    "beside a missing object": Form(lambda seen: seen.writes_object, lacking=BATCH),
}
SHORT = {
    "from the first write": "302 to a login page",
    "from mid-batch": "500 to writes",
    "beside a missing object": "404 without a body",
}


def torture(run: Run) -> None:
    """Let each outage last for a while in each form, and see that nothing is charged and that work goes on."""
    for form in FORMS:
        names = [SHORT[form]] if run.short else [*OUTAGES]
        endure_all(run, form, names, seconds=4 if run.short else 60)


def endure_all(run: Run, form: str, names: list[str], *, seconds: int) -> None:
    """Have one outage after the other in a world of its own."""
    lacking = FORMS[form].lacking
    with run.world() as world, BadS3(world.s3.endpoint_url, 0, {}).running() as s3:
        world.migration.reach_through(s3.endpoint_url)
        s3.delay = timedelta(seconds=0.02)
        for name in names:
            run.say(f"{form}: {name}")
            if world.waiting() < SOME:
                world.fill(MANY, large=0, lacking=lacking)
                world.enqueue(BATCH)
            run.figures.append(f"{name}, {form}: {endure(world, s3, name, FORMS[form], seconds)}")
            run.faults["outages"] += 1
        run.say(f"{form}: waiting for the rest")
        with world.workers(SEATS) as pool:
            world.wait_until_done()
            world.end_alive(pool, SEATS)
        lost = [str(number) for number in range(1, world.entries + 1) if lacking and number % lacking == 0]
        world.run_final_checks(Expected(lost, error=lambda batch: batch["missing"] == 1 and not batch["failed"]))


def endure(world: World, s3: BadS3, name: str, form: Form, seconds: int) -> str:
    """Have an outage; return what it cost, what was said of it, and when work went on, in words."""
    done, released, before = world.ask(DONE), world.ask(RELEASED), read_cost(world)
    outage, met = from_begin(OUTAGES[name], form.begins), s3.counts[ANSWERED]
    if form.fresh_workers:
        s3.outage = outage
    with world.workers(SEATS, "--parallel=4") as pool:
        if not form.fresh_workers:
            wait_for(lambda: world.ask(DONE) > done, deadline=WITHIN)
            s3.outage = outage
        wait_for(lambda: s3.counts[ANSWERED] > met, deadline=WITHIN)
        time.sleep(seconds)
        cost, said = read_cost(world) - before, world.ask(SAID)
        done, ended, s3.outage = world.ask(DONE), time.monotonic(), None
        if said.startswith("paused"):
            world.rowferry("resume")
        wait_for(lambda: world.ask(DONE) > done, deadline=WITHIN)
        went_on = time.monotonic() - ended
        world.end_alive(pool, SEATS)
    if cost.total():
        world.auditor.report(f"{name}: {dict(cost)} were held against objects: {said}")
    lost = world.ask(RELEASED) - released
    return f"{cost['failed']} failed, {cost['charged']} charged, {lost} released, went on after {went_on:.1f} s; {said}"


def from_begin(outage: Outage, begins: Callable[[LoggedRequest], bool]) -> Outage:
    """Return an outage that begins at the first request that fits."""
    begun = from_first(begins)
    return Outage(lambda seen: begun(seen) and outage.matches(seen), outage.answer)


def read_cost(world: World) -> Counter[str]:
    """Return the entries that have failed so far, and the attempts that were charged beyond the one that worked."""
    (cost,) = world.query(COST)
    return Counter(cost)
