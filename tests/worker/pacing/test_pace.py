"""The pace that a worker finds, on simulated servers: fast where they let it, gentle where they do not."""

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import given
from hypothesis import strategies as st

from rowferry_worker.pacing.pacer import Pacer
from support.pacing.fleet import FixedLimit, of_one_limit, run_fleet
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
from support.pacing.shapes import FAR, NEAR, SHAPES, make_server, measure
from support.pacing.simulator import Load, Worker

CPU = Load(cpu_seconds=0.0004)
"""Some six times an entry's CPU, so that few events show what a busy event loop does: 2,500 entries/s at the most."""
MOST = 2500
"""Entries per second of one worker with that load."""


def nightly(*values: object) -> ParameterSet:
    """Return values that are tried at night: a case like it is in each run of the suite."""
    return pytest.param(*values, marks=pytest.mark.soak)


def spread() -> Server:
    return Free(jittered(lognormal(0.3, 0.6), 0.001))


def throttling(per_second: float, burst_seconds: float = 0.1, *, scope: str = "all", fixed: bool = False) -> Server:
    return Throttling(Free(constant(0.07)), lambda: Bucket(per_second, burst_seconds, fixed_window=fixed), scope)


def total(fleet: list[Worker], since: float, until: float) -> float:
    return sum(worker.rate(since, until) for worker in fleet)


def refused_share(fleet: list[Worker], since: float, until: float) -> float:
    refused = sum(worker.refusals(since, until) for worker in fleet)
    return refused / (refused + total(fleet, since, until) * (until - since))


@pytest.mark.parametrize("seconds", [nightly(0.01), nightly(0.07), 0.4])
def test_a_free_server_is_used_as_far_as_the_workers_cpu_goes(seconds: float) -> None:
    (worker,) = run_fleet(Free(constant(seconds)), seconds=30, load=CPU)
    assert worker.rate(5, 30) > 0.9 * MOST


def test_spread_latency_and_instant_answers_do_not_lower_the_limit() -> None:
    (worker,) = run_fleet(spread(), seconds=30, load=CPU)
    assert worker.rate(5, 30) > 0.9 * MOST
    assert worker.lowest_limit(0, 30) >= 16


def test_two_modes_of_latency_do_not_lower_the_limit() -> None:
    (worker,) = run_fleet(Free(bimodal(0.03, 0.3, 0.7)), seconds=30, load=CPU)
    assert worker.rate(5, 30) > 0.9 * MOST


@pytest.mark.soak
def test_small_and_large_objects_together_reach_what_a_fixed_limit_reaches() -> None:
    load = Load(cpu_seconds=0.0004, share_large=0.5)

    def server() -> Server:
        return Free(jittered(lognormal(0.3, 0.6), 0.001), 2e9)

    best = max(
        run_fleet(server(), seconds=40, load=load, controller=lambda _, n=n: FixedLimit(n))[0].rate(20, 40)
        for n in (128, 512, 2048)
    )
    (worker,) = run_fleet(server(), seconds=40, load=load)
    assert worker.rate(20, 40) > 0.85 * best
    assert worker.lowest_limit(0, 40) >= 16


def test_a_server_that_works_on_few_at_once_is_not_sent_many_more() -> None:
    (worker,) = run_fleet(ConcurrencyLimited(constant(0.07), 128), seconds=40)
    assert worker.rate(5, 40) > 0.9 * 128 / 0.07
    assert max(limit for bin_, limit in worker.limits.items() if bin_ > 20) <= 3 * 128


def test_a_server_that_becomes_slower_for_good_gets_more_in_flight() -> None:
    server = Changing(Free(constant(0.05)), Free(constant(0.5)), 10)
    (worker,) = run_fleet(server, seconds=60, load=CPU)
    assert worker.lowest_limit(0, 60) >= 16
    assert worker.rate(40, 60) > 0.85 * MOST


@pytest.mark.parametrize("seconds", [nightly(3), 60])
def test_an_outage_is_forgotten_within_ten_seconds(seconds: int) -> None:
    (worker,) = run_fleet(Away(Free(constant(0.3)), 15, 15 + seconds), seconds=seconds + 35, load=CPU)
    assert worker.rate(15 + seconds + 10, 15 + seconds + 20) > 0.9 * MOST


@pytest.mark.parametrize("seconds", [3, nightly(30)])
def test_a_server_that_refuses_all_for_a_while_is_used_again_within_ten_seconds(seconds: int) -> None:
    free = Free(constant(0.3))
    server = Changing(Changing(free, Unlucky(free, 1.0), 15), free, 15 + seconds)
    (worker,) = run_fleet(server, seconds=seconds + 35, load=CPU)
    assert worker.rate(15 + seconds + 10, 15 + seconds + 20) > 0.8 * MOST


BOUNDS = [nightly(1000, 1), (1000, 4), nightly(1000, 16), (300, 1), nightly(300, 4), (300, 16)]


@pytest.mark.parametrize(("per_second", "workers"), BOUNDS)
def test_a_bound_is_used_and_shared_and_little_is_refused(per_second: float, workers: int) -> None:
    fleet = run_fleet(throttling(per_second), workers, seconds=60, load=Load(cpu_seconds=0.0001))
    assert total(fleet, 30, 60) > 0.95 * per_second
    assert refused_share(fleet, 30, 60) < 0.03
    shares = [worker.rate(30, 60) for worker in fleet]
    assert max(shares) < 3 * min(shares)


@pytest.mark.parametrize("server", [throttling(1000, 1.0), throttling(1000, fixed=True)], ids=["burst", "seconds"])
def test_other_buckets_are_used_as_well(server: Server) -> None:
    fleet = run_fleet(server, seconds=60)
    assert total(fleet, 30, 60) > 0.95 * 1000
    assert refused_share(fleet, 30, 60) < 0.02


@pytest.mark.parametrize("workers", [1, nightly(4), nightly(16)])
@pytest.mark.parametrize("per_second", [300, nightly(1000)])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_bound_is_used_whatever_the_server_counts(shape: str, per_second: int, workers: int) -> None:
    met = measure(shape, per_second, workers)
    assert met.used > 0.75
    assert met.refused < 0.15


@pytest.mark.parametrize("workers", [1, nightly(4), nightly(16)])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if "bucket" in shape])
def test_a_server_that_decides_at_once_is_used_as_well(shape: str, workers: int) -> None:
    met = measure(shape, 300, workers, load=NEAR)
    assert met.used > 0.8
    assert met.refused < 0.1


@pytest.mark.parametrize("shape", ["bucket of 1 s", "harsh bucket of 1 s"])
def test_looks_at_the_end_of_a_batch_do_not_hold_copies_back(shape: str) -> None:
    """They come first, a hundred at once: in the places of the copies, they would be an end of each batch's pace."""
    apart, together = measure(shape, 300, 1), measure(shape, 300, 1, controller=of_one_limit)
    assert apart.used > 0.9
    assert together.used < 0.95 * apart.used


@pytest.mark.parametrize(("shape", "workers"), [("bucket of 1 s", 1), nightly("harsh bucket of 1 s", 1)])
def test_a_bound_is_used_where_requests_are_refused_at_random_too(shape: str, workers: int) -> None:
    met = measure(shape, 300, workers, unlucky=0.05)
    assert met.used > 0.85
    assert met.refused < 0.15


def test_random_refusals_do_not_take_a_busy_worker_ever_further_down() -> None:
    """Its responses come late: what was sent before a cut is refused after it."""
    busy = Load(cpu_seconds=0.0015, travel=lognormal(0.07, 0.3), batch_size=100)
    assert measure("bucket of 1 s", 300, 1, unlucky=0.05, load=busy).used > 0.75


def test_a_bound_for_each_address_gives_each_worker_all_of_its_own() -> None:
    fleet = run_fleet(throttling(300, scope="address"), 4, seconds=60)
    assert total(fleet, 30, 60) > 0.95 * 4 * 300


@pytest.mark.soak
def test_a_worker_that_joins_gets_a_share_and_one_that_leaves_makes_room() -> None:
    fleet = run_fleet(throttling(1000), 4, seconds=90, joins=[30], leaves=[60, 60])
    assert fleet[4].rate(45, 60) > 100
    assert total(fleet, 75, 90) > 0.95 * 1000


def test_a_bound_that_falls_is_followed() -> None:
    """What was let through before it fell is no measure any more: else a third is refused for ever."""
    before, after = (make_server(lambda rate=rate: SHAPES["bucket of 1 s"](rate), FAR) for rate in (300, 100))
    (worker,) = run_fleet(Changing(before, after, 20), seconds=60, load=FAR)
    assert worker.rate(40, 60) > 0.85 * 100
    assert refused_share([worker], 40, 60) < 0.05


def test_a_bound_that_goes_is_noticed() -> None:
    (worker,) = run_fleet(Changing(throttling(300), Free(constant(0.07)), 20), seconds=60, load=CPU)
    assert worker.rate(50, 60) > 0.9 * MOST


@pytest.mark.parametrize("share", [nightly(0.01), nightly(0.02), 0.05])
def test_refusals_at_random_do_not_slow_a_worker_down(share: float) -> None:
    (worker,) = run_fleet(Unlucky(Free(constant(0.07)), share), seconds=40, load=CPU)
    assert worker.rate(10, 40) > 0.8 * MOST


@pytest.mark.soak
@pytest.mark.parametrize(
    ("joins", "seconds"),
    [nightly((), 0.07), nightly((), 0.4), ((3.0, 6.0, 9.0), 0.07), nightly((3.0, 6.0, 9.0), 0.4)],
)
def test_refusals_at_random_do_not_slow_several_workers_down(joins: tuple[float, ...], seconds: float) -> None:
    load, workers = Load(cpu_seconds=0.0015), 1 if joins else 4

    def run(share: float) -> float:
        fleet = run_fleet(Unlucky(Free(constant(seconds)), share), workers, load=load, joins=joins, seed=2)
        return total(fleet, 30 if joins else 0, 60)

    assert run(0.05) > 0.8 * run(0.0)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_bound_is_not_taken_for_random_refusals_by_workers_that_join(workers: int, seed: int) -> None:
    fleet = run_fleet(throttling(300), joins=[1.5 * number for number in range(1, workers + 1)], seed=seed)
    assert total(fleet, 30, 60) > 0.95 * 300
    assert refused_share(fleet, 30, 60) < 0.02
    assert max(worker.rate(30, 60) for worker in fleet) < 2 * min(worker.rate(30, 60) for worker in fleet)


def test_a_bound_is_found_where_requests_are_refused_at_random_too() -> None:
    (worker,) = run_fleet(Unlucky(throttling(1000), 0.05), load=Load(cpu_seconds=0.0001))
    assert worker.rate(30, 60) > 0.95 * 1000
    assert refused_share([worker], 30, 60) < 0.08


def test_a_pause_that_a_server_asks_for_is_kept_by_all_requests() -> None:
    now, key = 0.0, "server/bucket CopyObject"
    pace = Pacer(1, 64, lambda: now)
    for _ in range(3):  # the rate is learned, and changed
        now += 0.2
        for _ in range(10):
            pace.note_refused(key, 4.0)
        assert pace.reserve(key) > 3.9
    now = 9.0
    assert pace.reserve(key) == 0


@given(
    bounds=st.tuples(st.integers(1, 64), st.integers(1, 512)).map(sorted),
    ends=st.lists(st.tuples(st.floats(0, 60), st.sampled_from(["ok", "refused", "failed", "answer"])), max_size=500),
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
        elif end == "refused":
            pace.note_refused("server/bucket CopyObject")
        elif end == "failed":
            pace.note_failure()
        else:
            pace.note_answer()
        assert least <= pace.limit.value <= most
