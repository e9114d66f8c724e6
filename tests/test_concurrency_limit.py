"""The limit of objects in flight follows what the servers let through, within its bounds."""

from hypothesis import given
from hypothesis import strategies as st

from rowferry_worker.objects.concurrency import START, ConcurrencyLimit


def pass_rounds(
    limit: ConcurrencyLimit, rounds: int, *, seconds: float = 0.05, throttled_share: float = 0.0
) -> list[int]:
    """Respond in so many rounds, each with that share of refusals, and return the limit after each."""
    values: list[int] = []
    for _ in range(rounds):
        answers = limit.value
        for number in range(answers):
            throttled = number < round(answers * throttled_share)
            limit.note("CopyObject", seconds, throttled=throttled)
        values.append(limit.value)
    return values


def hold(limit: ConcurrencyLimit, bodies_bytes: int) -> None:
    """Let an answer be so large."""
    limit.note("GetObject", 0.05, throttled=False, held=bodies_bytes)


def test_it_begins_small_and_doubles_until_the_bound() -> None:
    limit = ConcurrencyLimit(1, 256)
    assert limit.value == START
    assert pass_rounds(limit, 6) == [8, 16, 32, 64, 128, 256]


def test_a_bound_below_the_start_is_kept_from_the_beginning() -> None:
    assert ConcurrencyLimit(1, 2).value == 2
    assert ConcurrencyLimit(64, 256).value == 64


def test_a_round_that_was_refused_whole_halves_it_and_ends_the_doubling() -> None:
    limit = ConcurrencyLimit(1, 256)
    pass_rounds(limit, 5)
    (after,) = pass_rounds(limit, 1, throttled_share=1.0)
    assert after == 128 // 2 + 256 // 64
    assert pass_rounds(limit, 2) == [after + 4, after + 8]


def test_a_few_refusals_cost_little_and_do_not_starve_a_server() -> None:
    limit = ConcurrencyLimit(1, 512)
    values = pass_rounds(limit, 200, throttled_share=0.05)
    assert min(values[100:]) > 128


def test_refusing_everything_leads_to_the_lower_bound_and_no_further() -> None:
    limit = ConcurrencyLimit(8, 256)
    assert pass_rounds(limit, 40, throttled_share=1.0)[-1] in {8, 9, 10, 11, 12}


def test_large_bodies_leave_room_for_fewer_objects_and_small_ones_for_all_again() -> None:
    limit = ConcurrencyLimit(1, 256)
    pass_rounds(limit, 8)
    for _ in range(10):
        hold(limit, 8 * 1024 * 1024)
    assert limit.value == 8
    assert pass_rounds(limit, 5)[-1] == 8, "answers that say nothing of sizes change nothing"
    for _ in range(100):
        hold(limit, 0)
    assert limit.value == 256


def test_a_large_body_among_small_ones_makes_it_careful_and_no_more() -> None:
    limit = ConcurrencyLimit(1, 256)
    pass_rounds(limit, 8)
    hold(limit, 20_000)
    hold(limit, 8 * 1024 * 1024)
    assert 8 < limit.value < 32


def test_the_users_lower_bound_stands_above_that_of_memory() -> None:
    limit = ConcurrencyLimit(32, 256)
    hold(limit, 640 * 1024 * 1024)
    assert limit.value == 32


def test_rising_latency_lowers_it_and_a_return_to_speed_raises_it_again() -> None:
    limit = ConcurrencyLimit(1, 128)
    pass_rounds(limit, 5, seconds=0.05)
    slow = pass_rounds(limit, 10, seconds=2.0)
    assert slow[-1] < 128
    assert pass_rounds(limit, 40, seconds=0.05)[-1] > slow[-1]


def test_a_server_that_is_slower_by_milliseconds_is_not_congested() -> None:
    limit = ConcurrencyLimit(1, 128)
    pass_rounds(limit, 3, seconds=0.001)
    assert pass_rounds(limit, 3, seconds=0.010)[-1] == 128


def test_a_server_that_has_become_slower_for_good_is_accepted_in_the_end() -> None:
    limit = ConcurrencyLimit(1, 64)
    pass_rounds(limit, 3, seconds=0.2)
    pass_rounds(limit, 400, seconds=0.7)
    assert limit.value > 1
    assert pass_rounds(limit, 400, seconds=0.7)[-1] == 64


@given(
    bounds=st.tuples(st.integers(1, 64), st.integers(1, 512)).map(sorted),
    answers=st.lists(st.tuples(st.floats(0, 60), st.booleans()), max_size=500),
)
def test_it_never_leaves_its_bounds(bounds: list[int], answers: list[tuple[float, bool]]) -> None:
    least, most = bounds
    limit = ConcurrencyLimit(least, most)
    for seconds, throttled in answers:
        limit.note("CopyObject", seconds, throttled=throttled)
        assert least <= limit.value <= most
