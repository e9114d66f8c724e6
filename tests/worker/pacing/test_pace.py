"""The pace that a worker finds, on simulated servers: fast where they let it, gentle where they do not."""

from typing import Any, NamedTuple

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import given
from hypothesis import strategies as st

from rowferry_worker.pacing.in_flight import START
from rowferry_worker.pacing.pacer import Pacer
from support.pacing.servers import (
    Away,
    Bucket,
    Changing,
    ConcurrencyLimited,
    Free,
    Server,
    Throttling,
    Unlucky,
    bimodal,
    constant,
    jittered,
    lognormal,
)
from support.pacing.shapes import FAR, NEAR, SHAPES, make_server, measure, run_fleet
from support.pacing.simulator import Load, Worker

CPU = Load(cpu_seconds=0.0004)
"""Some six times an entry's CPU, so that few events show what a busy event loop does."""
MOST = 2500
"""Entries per second of one worker with that load."""
SLOW = Load(cpu_seconds=0.0015)
"""The same of four workers on one machine: 667 entries per second each at the most."""
BUSY = Load(cpu_seconds=0.0015, travel=lognormal(0.07, 0.3), batch_size=100)
"""Responses come late: what was sent before a cut is refused after it."""


def nightly(*values: Any, id: str | None = None) -> ParameterSet:  # noqa: A002 - pytest's name
    """Return values that are tried at night: a case like it is in each run of the suite."""
    return pytest.param(*values, marks=pytest.mark.soak, id=id)


def throttling(per_second: float, burst_seconds: float = 0.1, scope: str = "all") -> Server:
    return Throttling(Free(constant(0.07)), lambda: Bucket(per_second, burst_seconds), scope)


def far(per_second: float, unlucky: float = 0.0) -> Server:
    return make_server(lambda: SHAPES["bucket of 1 s"](per_second), FAR, unlucky=unlucky)


def refusing_all(seconds: float, until: float) -> Server:
    """Refuse all from 15 s on."""
    free = Free(constant(seconds))
    return Changing(Changing(free, Unlucky(free, 1.0), 15), free, until)


def total(fleet: list[Worker], since: float, until: float) -> float:
    return sum(worker.rate(since, until) for worker in fleet)


def refused_share(fleet: list[Worker], since: float, until: float) -> float:
    refused = sum(worker.refusals(since, until) for worker in fleet)
    return refused / (refused + total(fleet, since, until) * (until - since))


class Case(NamedTuple):
    """A server, and what workers get through from one second to another."""

    server: Server
    since: float
    until: float
    per_second: float
    """The least."""
    workers: int = 1
    load: Load = CPU
    refused: float = 1.0
    """The largest share."""
    joins: tuple[float, ...] = ()
    leaves: tuple[float, ...] = ()
    spread: float = 100.0
    """The largest share of a worker, as a multiple of the smallest."""


SPREAD = jittered(lognormal(0.3, 0.6), 0.001)
FREE = {
    "10 ms": Case(Free(constant(0.01)), 1, 20, 0.9 * MOST),
    "70 ms": Case(Free(constant(0.07)), 1, 20, 0.9 * MOST),
    "400 ms": Case(Free(constant(0.4)), 3, 20, 0.9 * MOST),
    "spread": Case(Free(SPREAD), 3, 20, 0.9 * MOST),
    "two modes": Case(Free(bimodal(0.03, 0.3, 0.7)), 3, 20, 0.9 * MOST),
    "128 at once": Case(ConcurrencyLimited(constant(0.07), 128), 3, 20, 0.9 * 128 / 0.07, load=Load()),
    "slower for good": Case(Changing(Free(constant(0.05)), Free(constant(0.5)), 10), 40, 60, 0.85 * MOST),
    "away for 4 s": Case(Away(Free(constant(0.07)), 15, 19), 21, 30, 0.9 * MOST),
    "back from 4 s": Case(Away(Free(constant(0.07)), 15, 19), 19, 20, 0.5 * MOST),
    "away for 60 s": Case(Away(Free(constant(0.3)), 15, 75), 85, 95, 0.9 * MOST),
    "refuses all for 3 s": Case(refusing_all(0.3, 18), 28, 38, 0.8 * MOST),
    "refuses all for 30 s": Case(refusing_all(0.3, 45), 55, 65, 0.8 * MOST),
    "refuses 1 %": Case(Unlucky(Free(constant(0.07)), 0.01), 10, 40, 0.9 * MOST),
    "refuses 5 %": Case(Unlucky(Free(constant(0.07)), 0.05), 10, 40, 0.9 * MOST),
    "refuses 5 %, four workers": Case(Unlucky(Free(constant(0.4)), 0.05), 30, 60, 0.8 * 2667, 4, SLOW),
}
NEAR_BOUNDS = {
    "1 x 1000": Case(throttling(1000), 30, 60, 950, refused=0.03, load=NEAR),
    "16 x 1000": Case(throttling(1000), 30, 60, 950, 16, NEAR, refused=0.03, spread=3),
    "4 x 300": Case(throttling(300), 30, 60, 285, 4, NEAR, refused=0.03, spread=2),
    "16 x 300": Case(throttling(300), 30, 60, 285, 16, NEAR, refused=0.08, spread=3),
    "for each address": Case(throttling(300, scope="address"), 30, 60, 0.95 * 1200, 4),
    "joining": Case(throttling(300), 30, 60, 285, joins=(1.5, 3.0, 4.5), refused=0.03, spread=2),
    "leaving": Case(throttling(1000), 75, 90, 950, 4, joins=(30.0,), leaves=(60.0, 60.0)),
    "falls": Case(Changing(far(300), far(100), 20), 40, 60, 85, load=FAR, refused=0.05),
    "goes": Case(Changing(throttling(300), Free(constant(0.07)), 20), 50, 60, 0.9 * MOST),
    "and 5 % refused": Case(Unlucky(throttling(1000), 0.05), 30, 60, 900, load=NEAR, refused=0.08),
    "and 5 % refused, busy": Case(far(300, unlucky=0.05), 20, 45, 0.65 * 300, load=BUSY, refused=0.15),
}
DAILY = {
    "70 ms",
    "spread",
    "128 at once",
    "away for 4 s",
    "back from 4 s",
    "refuses 5 %",
    "16 x 300",
    "joining",
    "falls",
    "goes",
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=() if name in DAILY else pytest.mark.soak)
        for name, case in {**FREE, **NEAR_BOUNDS}.items()
    ],
)
def test_a_server_is_used_as_far_as_it_goes(case: Case) -> None:
    fleet = run_fleet(
        case.server, case.workers, seconds=case.until, load=case.load, joins=case.joins, leaves=case.leaves
    )
    assert total(fleet, case.since, case.until) > case.per_second
    assert refused_share(fleet, case.since, case.until) <= case.refused
    rates = [worker.rate(case.since, case.until) for worker in fleet if not worker.is_leaving]
    assert max(rates) <= case.spread * min(rates)


WORST = {"harsh": (0.6, 0.2), "bucket": (0.95, 0.04), "second": (0.85, 0.06)}
"""What is used of a bound at least, and refused at most, by the word that its shape's name has."""


@pytest.mark.parametrize("workers", [1, nightly(4)])
@pytest.mark.parametrize("per_second", [300, nightly(1000)])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_bound_is_used_whatever_the_server_counts(shape: str, per_second: int, workers: int) -> None:
    met = measure(shape, per_second, workers)
    used, refused = next(figures for word, figures in WORST.items() if word in shape)
    assert met.used > used
    assert met.refused < refused


def test_spread_latency_and_instant_answers_do_not_lower_the_limit() -> None:
    (worker,) = run_fleet(Free(SPREAD), seconds=30, load=CPU)
    assert worker.lowest_limit(0, 30) >= START


def test_a_server_that_works_on_few_at_once_is_not_sent_many_more() -> None:
    (worker,) = run_fleet(ConcurrencyLimited(constant(0.07), 128), seconds=40)
    assert max(limit for bin_, limit in worker.limits.items() if bin_ > 20) <= 3 * 128


def test_a_pause_that_a_server_asks_for_is_kept_by_all_requests() -> None:
    now, key = 0.0, "server/bucket CopyObject"
    pace = Pacer(1, 64, lambda: now)
    for _ in range(3):  # the rate is learned, and changed
        now += 0.2
        for _ in range(10):
            pace.note_refused(key, 4.0)
        assert pace.reserve(key) > 3.7
    now = 9.0
    assert pace.reserve(key) == 0


@given(
    bounds=st.tuples(st.integers(1, 64), st.integers(1, 512)).map(sorted),
    ends=st.lists(st.tuples(st.floats(0, 60), st.sampled_from(["ok", "refused"])), max_size=500),
    step_seconds=st.floats(0.0001, 2),
)
def test_the_limit_never_leaves_its_bounds(
    bounds: list[int], ends: list[tuple[float, str]], step_seconds: float
) -> None:
    (least, most), now = bounds, 0.0
    pace = Pacer(least, most, lambda: now)
    for seconds, end in ends:
        now += step_seconds
        if end == "ok":
            pace.note_success("server/bucket CopyObject", seconds, 0, pace.limit.value)
        else:
            pace.note_refused("server/bucket CopyObject")
        assert least <= pace.limit.value <= most
