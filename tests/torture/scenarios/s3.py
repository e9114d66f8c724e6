"""S3 throttles, lies and breaks off, refuses a token, or something else answers in its place."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from typing import NamedTuple

from support.entries.entry_table import TO
from support.s3.request_log import LoggedRequest, from_first
from torture.bad_s3 import RATES, BadS3
from torture.final_checks import Expected
from torture.outages import OUTAGES
from torture.scenarios.scenario import Scenario, Size
from torture.world import World

IN_ERROR = "select count(*)::int from rowferry.batch_queue where status = 'ERROR'"
RELEASED = "select count(*)::int from rowferry.batch_attempt where verdict = 'RELEASED'"
ENDED = "select count(*)::int from rowferry.batch_queue where status <> 'INIT'"


class Bad(Scenario):
    what = "S3 throttles 20 %, answers 500 and 200 with an error, resets, never answers, truncates, gives wrong ETags"
    faults = frozenset(RATES)
    forms = ("server", "stream")
    short, long = Size(1, 250), Size(1, 2500)
    batch = 25
    arguments = ("--parallel=8", "--request-timeout=3")

    def build(self, until: ExitStack) -> World:
        world = super().build(until)
        self.s3 = until.enter_context(BadS3(world.s3.endpoint_url, self.run.random.randrange(2**32)).running())
        world.migration.reach_through(self.s3.endpoint_url)
        return world

    def fill(self) -> None:
        """Let the enqueuer find an honest server."""
        rates, self.s3.rates = self.s3.rates, {}
        super().fill()
        self.s3.rates = rates

    def cause(self) -> None:
        """Let workers do what they can; what is in ERROR by then is put back once the server has come to reason."""
        self.finish()
        self.count("batches in ERROR", self.world.ask(IN_ERROR))
        self.s3.rates = {}
        self.world.rowferry("requeue", "--all")
        self.finish()
        self.run.faults.update(self.s3.counts)


class Token(Scenario):
    what = "S3 refuses every request with ExpiredToken until an operator renews the token and resumes the migration"
    faults = frozenset({"requests with an expired token", "pauses with a reason"})
    short, long = Size(1, 300), Size(4, 2000)
    within = timedelta(seconds=120)
    large, batch = 1, 10
    arguments = ("--parallel=4",)
    most_released = 20
    """Attempts at the most that come to nothing each time, over all workers: it is paused after few of each."""
    paused = "select count(*)::int from rowferry.migration where paused_at is not null and pause_reason is not null"
    held_against = """
select (select count(*) from rowferry.batch_queue where status = 'ERROR')::int
    + (select count(*) from rowferry.entry_failure)::int as held_against
"""
    reasons = "select distinct reason from rowferry.entry_failure union select error from rowferry.batch_queue limit 5"

    def build(self, until: ExitStack) -> World:
        world = super().build(until)
        self.s3 = self.slow_s3(until, world)
        return world

    def cause(self) -> None:
        self.s3.delay = timedelta(seconds=0.02)
        for number in range(self.times):
            self.say(f"{number} of {self.times} tokens")
            self.expire()
        self.count("requests with an expired token", self.s3.counts["refused"])

    def expire(self) -> None:
        """Refuse everything in the middle of the work until the migration is paused; then let it go on."""
        released = self.world.ask(RELEASED)
        self.wait_for_progress()
        self.s3.refusal = (400, "ExpiredToken")
        try:
            self.wait_for(lambda: self.world.ask(self.paused) > 0)
        except AssertionError:
            self.report("the migration was not paused while its token was refused")
        else:
            self.count("pauses with a reason")
        self.s3.refusal = None
        if held := self.world.ask(self.held_against):
            reasons = self.world.query(self.reasons)
            self.report(f"the expired token was held against {held} batches and entries: {reasons}")
        if (lost := self.world.ask(RELEASED) - released) > self.most_released:
            self.report(f"{lost} attempts came to nothing before the migration was paused")
        self.world.rowferry("resume")


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
BATCH = 10


class Form(NamedTuple):
    """When an outage begins: at the first request that fits."""

    begins: Callable[[LoggedRequest], bool]
    in_short: str
    """The one outage of the short form."""
    fresh_workers: bool = False
    """Whether the workers begin with it, so that they have seen nothing succeed."""
    lacking: int = 0
    """Each so many entries one has no object."""


def writes_late(seen: LoggedRequest) -> bool:
    """Return whether an entry in the middle of its batch is written: by four at a time, others have been before."""
    number = seen.key.removeprefix(f"{TO}u").partition("/")[0]
    return seen.writes_object and number.isdecimal() and int(number) % BATCH == BATCH - 3


FORMS: Mapping[str, Form] = {
    "from the first write": Form(lambda seen: seen.writes_object, "302 to a login page", fresh_workers=True),
    "from mid-batch": Form(writes_late, "500 to writes"),
    "beside a missing object": Form(lambda seen: seen.writes_object, "404 without a body", lacking=BATCH),
}


class LoginPage(Token):
    what = "a login page, a balancer's errors, a captive portal, garbage or a failing write path answer in S3's place"
    faults = frozenset({"outages"})
    forms = tuple(FORMS)
    within = timedelta(seconds=180)
    longest = timedelta(minutes=50)
    """Nine outages of a minute, in three forms."""
    short, long = Size(4, 400, seats=2), Size(60, 400, seats=2)
    """Seconds of each outage, and entries that are added where too few batches wait."""
    arguments = ()

    def fill(self) -> None:
        """Let each outage last for a while, with workers of its own; see that nothing is charged and work goes on."""
        self.s3.delay = timedelta(seconds=0.02)
        form = FORMS[self.form]
        for name in [form.in_short] if self.run.short else OUTAGES:
            self.say(name)
            if self.world.waiting() < 20 * self.seats:
                self.world.fill(self.entries, large=0, lacking=form.lacking)
                self.world.enqueue(self.batch)
            self.run.figures.append(f"{name}, {self.form}: {self.endure(name, form)}")
            self.count("outages")

    def cause(self) -> None:
        """Let the rest be done."""

    def endure(self, name: str, form: Form) -> str:
        """Have an outage; return what it cost, what was said of it, and when work went on, in words."""
        world, begun, outage = self.world, from_first(form.begins), OUTAGES[name]
        ended, released, before, met = world.ask(ENDED), world.ask(RELEASED), self.read_cost(), self.count_answered()

        def begin() -> None:
            self.s3.outage = (lambda seen: begun(seen) and outage.matches(seen), outage.answer)

        if form.fresh_workers:
            begin()
        with world.workers(self.seats, "--parallel=4") as pool:
            if not form.fresh_workers:
                self.wait_for(lambda: world.ask(ENDED) > ended)
                begin()
            self.wait_for(lambda: self.count_answered() > met)
            time.sleep(self.times)
            cost, said = self.read_cost() - before, world.ask(SAID)
            done, over_at, self.s3.outage = world.ask(ENDED), time.monotonic(), None
            if said.startswith("paused"):
                world.rowferry("resume")
            self.wait_for(lambda: world.ask(ENDED) > done)
            went_on = time.monotonic() - over_at
            world.end_alive(pool, self.seats)
        if cost.total():
            self.report(f"{name}: {dict(cost)} were held against objects: {said}")
        lost = world.ask(RELEASED) - released
        told = f"{cost['failed']} failed, {cost['charged']} charged, {lost} released"
        return f"{told}, went on after {went_on:.1f} s; {said}"

    def count_answered(self) -> int:
        return self.s3.counts["answered by something else"]

    def read_cost(self) -> Counter[str]:
        """Return the entries that have failed so far, and the attempts that were charged beyond the one that worked."""
        (cost,) = self.world.query(COST)
        return Counter(cost)

    def expect(self) -> Expected:
        lacking = FORMS[self.form].lacking
        lost = [str(number) for number in range(1, self.world.entries + 1) if lacking and number % lacking == 0]
        return Expected(lost, error=lambda batch: batch["missing"] == 1 and not batch["failed"])
