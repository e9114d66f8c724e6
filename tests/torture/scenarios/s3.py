"""S3 throttles, lies and breaks off, or something else answers in its place."""

import time
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

from support.s3.outages import OUTAGES, Outage, everything
from support.s3.request_log import s3_error
from torture.bad_s3 import RATES, BadS3
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

    def make_proxy(self, world: World) -> BadS3:
        self.s3 = BadS3(world.s3.endpoint_url, self.run.random.randrange(2**32))
        return self.s3

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
EXPIRED = "an expired token"
ALL_OUTAGES: Mapping[str, Outage] = {**OUTAGES, EXPIRED: Outage(everything, s3_error(400, "ExpiredToken"))}
SHORT = ("302 to a login page", "500 to writes", EXPIRED)


class LoginPage(Scenario):
    what = "a login page, a balancer's errors, an expired token, garbage or a failing write path answer in S3's place"
    faults = frozenset({"outages", "pauses with a reason"})
    within = timedelta(seconds=180)
    longest = timedelta(minutes=40)
    short, long = Size(4, 400, seats=2), Size(30, 400, seats=2)
    """Seconds of each outage, and entries that are added where too few batches wait."""
    batch = 10
    arguments = ()

    def make_proxy(self, world: World) -> BadS3:
        self.s3 = BadS3(world.s3.endpoint_url, 0, {})
        self.s3.delay = timedelta(seconds=0.02)
        return self.s3

    def fill(self) -> None:
        """Let each outage last for a while, with workers of its own; see that nothing is charged and work goes on."""
        for name in SHORT if self.run.short else ALL_OUTAGES:
            self.say(name)
            self.keep_busy(20 * self.seats, self.entries)
            self.run.figures.append(f"{name}: {self.endure(name)}")
            self.count("outages")

    def endure(self, name: str) -> str:
        """Have an outage in mid-work; return what it cost, what was said of it, and when work went on, in words."""
        world, ended, released = self.world, self.world.ask(ENDED), self.world.ask(RELEASED)
        before, met = self.read_cost(), self.count_answered()
        with world.workers(self.seats, "--parallel=4") as pool:
            self.wait_for(lambda: world.ask(ENDED) > ended)
            self.s3.outage = ALL_OUTAGES[name]
            self.wait_for(lambda: self.count_answered() > met)
            time.sleep(self.times)
            cost, said = self.read_cost() - before, world.ask(SAID)
            done, over_at, self.s3.outage = world.ask(ENDED), time.monotonic(), None
            if said.startswith("paused: "):
                self.count("pauses with a reason")
                world.rowferry("resume")
            elif name == EXPIRED:
                self.report(f"the migration was not paused while its token was refused: {said}")
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
