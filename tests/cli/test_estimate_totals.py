"""The arithmetic of an estimate: ranges, heavy tails, empty samples, what bounds the pace. No server."""

import random
from collections import Counter
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.batch import Outcome
from rowferry.errors import ObjectNotFound
from rowferry.http import event_loop
from rowferry.plan import Plan
from rowferry.plan_file import parse_plan
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_cli.estimate.bounds import follow_queue, project
from rowferry_cli.estimate.drive import MeterReading
from rowferry_cli.estimate.dry_run import Operation
from rowferry_cli.estimate.entries import extrapolate
from rowferry_cli.estimate.intervals import Interval, Stratum, estimate_share, estimate_totals, share_of_largest
from rowferry_cli.estimate.printing import draw_sizes, show_bytes
from rowferry_cli.estimate.readings import Measurement, choose_steady, is_steady, trim
from rowferry_cli.estimate.result import SIZE_CLASSES, Prices, calculate_costs, classify_sizes, estimate_seconds
from rowferry_cli.estimate.sample import ObjectSample, SampledObject
from rowferry_cli.estimate.totals import SampledTable, calculate_totals
from rowferry_worker.copying.put_limit import MOST_BYTES
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.multipart.part_size import COPY_PART_BYTES, SMALLEST_PART_BYTES, STREAM_PART_BYTES

SERVER, STREAM = ServerCopy("old"), StreamCopy()
DIGEST = "0" * 32
BY_PARTS = f"{DIGEST}-2"
COPY: Operation = ("production", "CopyObject")


def sample(*seen: SampledObject, entries: float | None = None, error: float = 0.0) -> list[SampledTable]:
    return [SampledTable("t.key", len(seen) if entries is None else entries, error, seen)]


def objects(*sizes: int, streamed: bool = True) -> list[SampledObject]:
    write = "PutObject" if streamed else "CopyObject"
    requests: Counter[Operation] = Counter({("production", write): 1, ("legacy", "HeadObject"): 1})
    return [SampledObject(size, requests=requests, egress_bytes=size if streamed else 0) for size in sizes]


# Totals and their ranges


def test_a_table_that_was_sampled_whole_has_no_uncertainty() -> None:
    work = calculate_totals(sample(*objects(1, 10, 100)), STREAM)
    assert work.copied_bytes == Interval(111, 111, 111)
    assert work.entries.is_exact
    assert work.shares["missing"].is_exact


def test_a_sample_is_scaled_to_all_entries_of_its_table() -> None:
    small, large = SampledTable("a.key", 1000, 0, objects(10, 10)), SampledTable("b.key", 10, 0, objects(5000, 5000))
    work = calculate_totals([small, large], STREAM)
    assert work.copied_bytes.estimate == 1000 * 10 + 10 * 5000
    assert work.tables["b.key"].estimate == 10


def test_no_entry_makes_no_work() -> None:
    work = calculate_totals(sample(), SERVER)
    assert (work.entries.estimate, work.all_requests.high, work.copied_bytes.high, work.requests) == (0, 0, 0, {})
    projection = project(plan(), measurement(), work.requests_per_entry(), work.row_share, 2)
    assert estimate_seconds(work, projection, 0.0) == Interval(0, 0, 0)


def test_where_all_objects_are_missing_nothing_is_copied() -> None:
    missing = SampledObject(outcome=Outcome.MISSING, requests=Counter({("legacy", "GetObject"): 1}))
    work = calculate_totals(sample(*[missing] * 20, entries=1000), STREAM)
    assert (work.copied_bytes.high, work.egress_bytes.high) == (0, 0)
    assert work.requests == {("legacy", "GetObject"): 1000}
    assert (work.shares["missing"].estimate, work.row_share, work.sizes) == (1, 0, [])


@pytest.mark.soak
def test_the_range_of_heavy_tails_reckons_with_what_no_sample_holds() -> None:
    """Half of all bytes are in so few objects that most samples hold none of them: the mean is 11,000 bytes."""
    held = 0
    for seed in range(40):
        dice = random.Random(seed)
        sizes = [int(1000 * dice.paretovariate(1.1)) for _ in range(500)]
        work = calculate_totals(sample(*objects(*sizes), entries=1_000_000), STREAM)
        held += work.copied_bytes.low < 11_000 * 1_000_000 < work.copied_bytes.high
        assert work.largest_share > 0.1
    assert held >= 36


def test_the_range_of_even_sizes_is_narrow() -> None:
    work = calculate_totals(sample(*objects(*[1000 + number for number in range(500)]), entries=1_000_000), STREAM)
    assert work.copied_bytes.high < 1.1 * work.copied_bytes.low
    assert work.largest_share < 0.05


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=60), st.integers(100, 10**8))
def test_a_range_holds_its_estimate(sizes: list[int], entries: int) -> None:
    (total,) = estimate_totals([Stratum(entries, entries / 100, [(size,) for size in sizes])], 1)
    assert total.low <= total.estimate <= total.high
    assert total.low >= 0


def test_a_ninety_five_per_cent_range_holds_the_truth_about_so_often() -> None:
    """Of lognormal sizes with a σ of 1; with heavier tails the percentile interval holds it less often."""
    dice, held = random.Random(3), 0
    truth = 1000 * 2.718281828**0.5
    for seed in range(100):
        rows = [(1000 * dice.lognormvariate(0, 1),) for _ in range(200)]
        (total,) = estimate_totals([Stratum(10_000, 0, rows)], 1, seed=seed)
        held += total.low <= 10_000 * truth <= total.high
    assert held >= 85


def test_a_table_without_a_sampled_entry_takes_the_others_for_its_own() -> None:
    tables = [SampledTable("a.key", 100, 0, objects(7)), SampledTable("b.key", 100, 10, ())]
    assert calculate_totals(tables, STREAM).copied_bytes.estimate == 1400


def test_an_uncertain_number_of_entries_is_part_of_every_range() -> None:
    exact = calculate_totals(sample(*objects(*[5] * 100), entries=10_000), STREAM)
    rough = calculate_totals(sample(*objects(*[5] * 100), entries=10_000, error=1000), STREAM)
    assert exact.writes.is_exact
    assert rough.writes.high - rough.writes.low > 2000
    assert (round(rough.entries.low), round(rough.entries.high)) == (8040, 11_960)


@pytest.mark.parametrize(("found", "low", "high"), [(0, 0.0, 0.037), (100, 0.963, 1.0), (50, 0.40, 0.60)])
def test_a_share_of_none_may_still_be_some(found: int, low: float, high: float) -> None:
    share = estimate_share(found, 100)
    assert (share.low, share.high) == (pytest.approx(low, abs=0.005), pytest.approx(high, abs=0.005))
    assert estimate_share(0, 0) == Interval(0, 0, 1)


def test_the_largest_one_per_cent_is_one_object_at_least() -> None:
    assert share_of_largest([1, 1, 8]) == 0.8
    assert share_of_largest([]) == share_of_largest([0, 0]) == 0


def test_a_server_that_may_ignore_the_condition_widens_the_range_of_reads_only() -> None:
    tables = sample(*objects(*[5] * 50, streamed=False))
    known, unknown = calculate_totals(tables, SERVER), calculate_totals(tables, SERVER, condition_is_known=False)
    assert unknown.reads.high == known.reads.high + 50
    assert (unknown.reads.estimate, unknown.writes) == (known.reads.estimate, known.writes)


def test_prices_apply_to_what_they_are_given_for() -> None:
    work = calculate_totals(sample(*objects(*[10**9] * 10)), STREAM)
    assert calculate_costs(work, Prices()) == {}
    costs = calculate_costs(work, Prices(egress=0.09, writes=5.0))
    assert costs["egress"].estimate == pytest.approx(0.9)
    assert costs["writes"].estimate == pytest.approx(work.writes.estimate / 200)
    assert "reads" not in costs


def test_objects_that_the_server_copies_leave_no_egress() -> None:
    work = calculate_totals(sample(*objects(100, 200, streamed=False)), SERVER)
    assert (work.egress_bytes.high, work.copied_bytes.estimate) == (0, 300)


def test_each_size_is_in_one_class() -> None:
    sizes = [0, 1, *SIZE_CLASSES, SIZE_CLASSES[-1] + 1]
    classes = classify_sizes(sizes)
    assert sum(number for _, number, _ in classes) == len(sizes)
    assert sum(total for _, _, total in classes) == sum(sizes)
    assert [number for _, number, _ in classes] == [3, 1, 1, 1, 1, 1, 1]
    assert "≤ 4.1 kB" in draw_sizes(sizes)
    assert "> 1.1 GB" in draw_sizes(sizes)


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (999_600, "1.0 MB"), (123_456_789, "123 MB"), (5e15, "5,000 TB")],
)
def test_bytes_are_shown_in_the_unit_that_fits(number: float, shown: str) -> None:
    assert show_bytes(number) == shown


# Counts of large tables


def test_a_count_by_draws_is_extrapolated() -> None:
    assert extrapolate([100], 1.0) == (100, 0)
    count, error = extrapolate([10, 12, 8, 10, 11, 9, 10, 10], 0.01)
    assert count == pytest.approx(8000)
    assert 200 < error < 600


def test_no_entry_in_any_draw_leaves_room_for_some() -> None:
    assert extrapolate([0] * 8, 0.01) == (0, 100)


def test_draws_that_differ_say_that_the_count_is_unsure() -> None:
    even, uneven = extrapolate([10] * 8, 0.01), extrapolate([80, 0, 0, 0, 0, 0, 0, 0], 0.01)
    assert even[0] == uneven[0]
    assert uneven[1] > 10 * even[1]


# Parts


def copy_in_a_dry_run(size_bytes: int, *, streamed: bool, etag: str = DIGEST) -> SampledObject:
    """Return what is seen of an object of this size, between servers that have nothing else."""

    async def respond(request: Request) -> Response:
        if request.side == "production":
            raise ObjectNotFound("HTTP 404", "")
        headers = {"etag": f'"{etag}"', "content-length": str(size_bytes)}
        is_read = request.operation == "GetObject"
        return (
            Response(206, {**headers, "content-range": f"bytes 0-0/{size_bytes}"}, b"x")
            if is_read
            else Response(200, headers)
        )

    async def count() -> None:
        await found.look(respond, 0)
        await found.count(1, honours_condition=True)

    endpoint = {"endpoint_url": "http://another.example"} if streamed else {}
    found = ObjectSample(plan(production={"bucket": "new", **endpoint}), [("image/a", "avatar/a")])
    event_loop.run(count())
    return found.objects[0]


@pytest.mark.parametrize(
    ("size", "etag", "parts"),
    [
        (MOST_BYTES, DIGEST, 0),
        (MOST_BYTES + 1, DIGEST, MOST_BYTES // SMALLEST_PART_BYTES + 1),
        (STREAM_PART_BYTES, BY_PARTS, 0),
        (STREAM_PART_BYTES + 1, BY_PARTS, 2),
        (10**12, DIGEST, 10_000),
    ],
)
def test_a_large_object_is_counted_by_its_parts(size: int, etag: str, parts: int) -> None:
    seen = copy_in_a_dry_run(size, streamed=True, etag=etag)
    assert (seen.requests["production", "UploadPart"], seen.requests["legacy", "GetObject"]) == (parts, parts + 1)
    assert (seen.size_bytes, seen.egress_bytes, seen.written_bytes) == (size, size, size)


def test_a_copy_within_a_server_goes_in_parts_above_five_gibibytes() -> None:
    seen = copy_in_a_dry_run(5 * 1024**3 + 1, streamed=False)
    assert (seen.requests["production", "UploadPartCopy"], seen.requests[COPY]) == (
        5 * 1024**3 // COPY_PART_BYTES + 1,
        1,
    )
    assert (seen.size_bytes, seen.egress_bytes) == (5 * 1024**3 + 1, 0)


# Time and what bounds it


def plan(**more: Any) -> Plan:
    entries = {"table": "t", "id": "id", "key": "key", "from": "image/", "to": "avatar/"}
    sides = {"legacy": {"bucket": "old"}, "production": {"bucket": "new"}}
    return parse_plan({"migration": {"name": "m"}, **sides, "entries": [entries], **more}, "of the test")


def measurement(rate: float = 100.0, **more: Any) -> Measurement:
    given: dict[str, Any] = {
        "seconds": 20.0,
        "objects": 2000,
        "entries_per_second": Interval(rate, rate * 0.9, rate * 1.1),
        "bytes_per_second": 0.0,
        "cpu_cores": 0.2,
        "in_flight": 4000,
        "most_in_flight": 4096,
        "requests_per_second": {COPY: rate},
        "first_latency_seconds": {COPY: 0.07},
        "last_latency_seconds": {COPY: 0.071},
        "copied": True,
    }
    return Measurement(**{**given, **more})


def bound_of(measured: Measurement, processes: int = 4, limits: Plan | None = None) -> tuple[str, bool, float]:
    found = project(limits or plan(), measured, {"legacy": 1.0, "production": 2.0}, 1.0, processes)
    assert found.entries_per_second.low <= found.entries_per_second.estimate <= found.entries_per_second.high
    return found.bound.cause, found.bound.more_workers_help, found.entries_per_second.estimate


def test_a_server_that_refuses_more_bounds_any_number_of_workers() -> None:
    measured = measurement(300, refused={COPY: 0.05}, requests_per_second={COPY: 300.0})
    assert bound_of(measured, processes=16) == ("server_rate", False, 300)
    sentence = project(plan(), measured, {}, 1.0, 1).bound.sentence
    assert sentence == "the production server's rate limit, which lets 300 CopyObject/s through"


def test_a_few_refusals_are_no_bound_unless_the_worker_holds_itself_back() -> None:
    assert bound_of(measurement(refused={COPY: 0.001}))[0] == "latency"
    assert bound_of(measurement(refused={COPY: 0.001}, held_back=frozenset({COPY})))[0] == "server_rate"


def test_a_busy_core_is_multiplied_by_the_processes() -> None:
    assert bound_of(measurement(cpu_cores=0.97), processes=4) == ("cpu", True, 400)


def test_a_limit_below_the_highest_means_that_more_does_not_pay() -> None:
    measured = measurement(in_flight=300, last_latency_seconds={COPY: 0.4})
    assert bound_of(measured, processes=4) == ("saturation", False, 100)
    assert project(plan(), measured, {}, 1.0, 4).entries_per_second.high == pytest.approx(440)
    assert "took 70 ms at first and takes 400 ms" in project(plan(), measured, {}, 1.0, 4).bound.sentence


def test_the_highest_limit_is_multiplied_too() -> None:
    assert bound_of(measurement(), processes=4) == ("latency", True, 400)


@pytest.mark.parametrize("in_flight", [10, 4000])
def test_a_bound_is_named_without_a_single_success(in_flight: int) -> None:
    nothing = measurement(in_flight=in_flight, first_latency_seconds={}, last_latency_seconds={})
    assert project(plan(), nothing, {}, 1.0, 1).bound.sentence


@pytest.mark.parametrize("more", [{"seconds": 0.3}, {"is_rising": True}])
def test_a_measurement_that_was_too_short_says_so(more: dict[str, Any]) -> None:
    assert bound_of(measurement(**more))[0] == "short_measurement"


def test_the_plans_own_limits_bound_the_pace_by_the_requests_of_an_entry() -> None:
    limits = plan(production={"bucket": "new", "max_requests_per_second": 50})
    assert bound_of(measurement(), limits=limits) == ("plan_requests", False, 25)
    limits = plan(database={"max_rows_per_second": 10})
    assert bound_of(measurement(), limits=limits) == ("plan_rows", False, 10)
    limits = plan(database={"max_rows_per_second": 10_000})
    assert bound_of(measurement(), limits=limits)[0] == "latency"


def test_unmeasured_writes_may_halve_the_pace() -> None:
    read, copied = (project(plan(), measurement(copied=one), {}, 1.0, 1) for one in (False, True))
    assert read.entries_per_second.low == copied.entries_per_second.low / 2
    assert read.entries_per_second.estimate == copied.entries_per_second.estimate


def test_a_queue_that_runs_tells_its_own_pace() -> None:
    found = follow_queue(1234.0, 3)
    assert found.entries_per_second.estimate == 1234
    assert found.bound.sentence == "what 3 worker processes do now, 1,234 entries/s in the last minute"


def test_what_lies_beyond_the_first_part_takes_time_of_its_own() -> None:
    part = STREAM_PART_BYTES
    work = calculate_totals(sample(*objects(*[part + 1000] * 10)), STREAM)
    projection = project(plan(), measurement(10), {}, 1.0, 1)
    assert estimate_seconds(work, projection, 100.0).estimate == pytest.approx(10 / 10 + 10 * 1000 / 100)


def test_without_a_pace_a_migration_has_no_end() -> None:
    work = calculate_totals(sample(*objects(1, 2)), STREAM)
    projection = project(plan(), measurement(0.0), {}, 1.0, 1)
    assert estimate_seconds(work, projection, 0.0).estimate == inf


# Readings


def read(*ended: int, every: float = 1.0) -> list[MeterReading]:
    return [MeterReading(number * every, 0, one, 0, Counter(), Counter(), 4) for number, one in enumerate(ended)]


def test_the_time_after_the_last_object_does_not_count() -> None:
    assert [reading.ended for reading in trim(read(0, 50, 100, 100, 100))] == [0, 50, 100]


def test_the_first_part_of_a_measurement_does_not_count() -> None:
    readings = read(0, 1, 5, 30, 60, 90, 120, 150, 180, 210, 240)
    start, end = choose_steady(readings)
    assert (start.ended, end.ended) == (60, 240)
    assert choose_steady(read(0, 3, 5, 6)) == (read(0)[0], read(0, 3, 5, 6)[-1])


def test_a_pace_is_steady_when_it_stays() -> None:
    assert is_steady(read(*range(0, 1000, 100)))
    assert not is_steady(read(*[number**2 for number in range(10)]))
    assert not is_steady(read(0, 100, 200))
    assert not is_steady(read(*[0] * 10))


def test_an_entry_of_several_objects_costs_the_requests_of_each() -> None:
    seen = objects(*[10] * 6)
    several = calculate_totals([SampledTable("a", 300, 0.0, seen, objects_per_entry=3.0)], STREAM)
    single = calculate_totals([SampledTable("a", 900, 0.0, seen)], STREAM)
    assert (several.entries.estimate, single.entries.estimate) == (300, 900)
    assert several.copied_bytes == single.copied_bytes
    assert (several.reads, several.writes) == (single.reads, single.writes)
    assert several.requests_per_entry().keys() == single.requests_per_entry().keys()
    for operation, number in several.requests_per_entry().items():
        assert number == pytest.approx(3 * single.requests_per_entry()[operation], rel=0.05)
