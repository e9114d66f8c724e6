"""Which of two objects was written last, by the clocks of two servers: whatever they say, never the wrong one."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from hypothesis import given
from hypothesis import strategies as st

from rowferry.s3.clocks import (
    NO_SKEW,
    UNKNOWN_SKEW,
    UPLOAD_SPAN,
    ServerClock,
    Skew,
    compare_clocks,
    find_age,
    put_in_order,
    read_date,
)
from rowferry.s3.responses import Response

START = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)

moments = st.floats(0, 100)
skews = st.floats(-30, 30)


def show(second: float) -> str:
    """Return what a header says of this second: it counts whole ones."""
    return format_datetime((START + timedelta(seconds=second)).replace(microsecond=0), usegmt=True)


def written(second: float, etag: str = "a") -> Response:
    return Response(200, {"last-modified": show(second), "etag": f'"{etag}"'})


def measure(ahead: float, sent: list[float], way_seconds: float) -> ServerClock:
    """Return a clock that is ahead by so much, read at these moments, each request being on its way for so long."""
    clock = ServerClock()
    for moment in sent:
        told = read_date({"date": show(moment + way_seconds / 3 + ahead)})
        clock.note(told, START.timestamp() + moment, START.timestamp() + moment + way_seconds)
    return clock


@given(st.tuples(skews, skews), st.lists(moments, min_size=1, max_size=9), st.floats(0, 0.5))
def test_the_difference_lies_where_the_measurement_says(
    ahead: tuple[float, float], sent: list[float], way_seconds: float
) -> None:
    legacy, production = (measure(each, sent, way_seconds) for each in ahead)
    skew = compare_clocks(legacy, production)
    assert skew.low - 1e-3 <= ahead[1] - ahead[0] <= skew.high + 1e-3


@given(moments, moments, skews, st.floats(0, 2), st.floats(0, 2))
def test_no_order_is_ever_wrong(legacy: float, production: float, ahead: float, below: float, above: float) -> None:
    """`ahead`: how far production's clock is ahead, which is known to lie within some bounds."""
    order = put_in_order(written(legacy), written(production + ahead), Skew(ahead - below, ahead + above))
    if order == "newer":
        assert legacy > production
    if order == "older":
        assert legacy < production


@given(moments, st.floats(2.51, 60), st.floats(-0.25, 0.25))
def test_what_is_three_seconds_apart_is_put_in_order(first: float, apart: float, ahead: float) -> None:
    """Two and a half, in fact, as far as a measurement of five readings goes."""
    skew = Skew(ahead - 0.25, ahead + 0.25)
    assert put_in_order(written(first + apart), written(first + ahead), skew) == "newer"
    assert put_in_order(written(first), written(first + apart + ahead), skew) == "older"


def test_five_readings_within_a_second_tell_it_to_half_a_second_and_contradictions_tell_less() -> None:
    sent = [0.13 + 0.25 * number for number in range(5)]
    skew = compare_clocks(measure(0, sent, 0.01), measure(-5.2, sent, 0.01))
    assert skew.high - skew.low <= 0.6
    assert skew.low <= -5.2 <= skew.high
    clock = measure(0, [0.5], 0)
    clock.note(read_date({"date": show(10)}), START.timestamp() + 1, START.timestamp() + 1)  # of another machine
    assert clock.high - clock.low > 8


def test_a_server_that_tells_no_time_may_be_off_as_far_as_signatures_allow() -> None:
    for legacy in (Response(200), written(5)):
        assert put_in_order(legacy, Response(200), NO_SKEW) == "unclear"
    skew = compare_clocks(ServerClock(), measure(0, [0], 0))
    assert (skew, skew.is_known) == (Skew(-UNKNOWN_SKEW, UNKNOWN_SKEW), False)
    assert put_in_order(written(600), written(0), skew) == "unclear"
    assert put_in_order(written(UNKNOWN_SKEW + 2), written(0), skew) == "newer"


def test_an_upload_by_parts_may_have_ended_later_than_it_says() -> None:
    for etag, is_end_told, order in (("a-2", False, "unclear"), ("a-2", True, "older"), ("a", False, "older")):
        for later, expected in ((UPLOAD_SPAN - 1, order), (UPLOAD_SPAN + 2, "older")):
            pair = written(0, etag), written(later)
            assert put_in_order(*pair, NO_SKEW, is_end_told=is_end_told) == expected


def test_an_age_is_told_by_one_clock() -> None:
    assert find_age(Response(200, {"date": show(100), "last-modified": show(70)})) == 30
    assert find_age(Response(200, {"last-modified": show(70)})) is None
    assert find_age(Response(200, {"date": show(70), "last-modified": "yesterday"})) is None
