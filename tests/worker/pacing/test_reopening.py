"""At what rate a worker goes on after a server has let nothing through."""

import pytest

from rowferry_worker.pacing.reopening import BELOW, DOWN, DOWN_AGAIN, FIRST, Reopening


def opened(*seconds: tuple[float, int], since: float = 10.0, resumed: float = 0.0) -> Reopening:
    """Return a server that was open again at a moment, and let so many through until later ones."""
    found = Reopening(0.0)
    found.refused_at = since
    found.open(since, 0)
    found.let_through, found.resumed = 0.0, resumed
    for now, accepted in seconds:
        found.note(now, accepted, 0)
    return found


def test_what_a_server_has_saved_up_is_not_asked_for_again() -> None:
    """It lets that through at first, however little it allows."""
    server = Reopening(0.0)
    server.note(2.0, 2000, 0)
    server.close(3000.0)
    assert server.resumption.per_second == pytest.approx(FIRST * 1000.0)


def test_what_is_let_through_from_one_refusal_to_the_next_is_the_bound() -> None:
    server = opened((20.0, 3000), resumed=200.0)
    server.close(320.0)
    assert server.let_through == pytest.approx(300.0)
    assert server.resumption.per_second == pytest.approx(BELOW * 300.0)
    assert 300.0 < server.resumption.ceiling < 320.0
    assert server.resumption.is_known


def test_a_bound_that_little_was_asked_of_is_looked_for_above() -> None:
    server = opened((20.0, 3000), resumed=200.0)
    server.close(900.0)
    assert 300.0 < server.resumption.per_second < 500.0
    assert not server.resumption.is_known


def test_a_rate_that_was_above_the_bound_from_the_beginning_tells_it() -> None:
    server = opened((11.0, 300), resumed=600.0)
    server.close(900.0)
    assert server.resumption.per_second == pytest.approx(BELOW * 300.0)
    assert not server.resumption.is_known, "a second tells it roughly"


def test_rates_that_are_refused_at_once_fall_fast() -> None:
    server = opened((10.1, 5), resumed=800.0)
    server.close(800.0)
    assert server.resumption.per_second == pytest.approx(DOWN * 800.0)
    server.refused_at = 11.0
    server.open(11.0, 0)
    server.note(11.1, 5, 0)
    server.close(320.0)
    assert server.resumption.per_second == pytest.approx(DOWN_AGAIN * 320.0)


def test_a_bound_that_fell_is_forgotten() -> None:
    server = opened((20.0, 3000), resumed=200.0)
    server.close(320.0)
    server.refused_at = 21.0
    server.open(21.0, 0)
    server.close(200.0)
    assert server.resumption.per_second == pytest.approx(DOWN * 200.0)


def test_another_share_of_a_bound_is_taken_with_what_was_let_through() -> None:
    server = opened((20.0, 3000), resumed=200.0)
    server.scale(0.5)
    server.close(160.0)
    assert server.let_through == pytest.approx(150.0)
