"""A large object over one connection: it is given up where it would take too long, and only there."""

from collections.abc import Callable

import pytest

from rowferry_worker.objects.link_trial import REST_SECONDS, LinkTrial, TooSlow

MB = 1_000_000
GB = 1000 * MB
TICK = 0.01


def pass_over(link: Callable[[float], float], size_bytes: int) -> tuple[int, float]:
    """Pass an object over a link, whose bytes a second depend on the time; return what has passed, and the seconds."""
    trial, passed, now = LinkTrial(size_bytes), 0, 0.0
    while passed < size_bytes:
        now += TICK
        piece = min(int(link(now) * TICK), size_bytes - passed)
        try:
            trial.note(piece, now)
        except TooSlow:
            return passed, now
        passed += piece
    return passed, now


LINKS: dict[str, tuple[Callable[[float], float], int, bool]] = {
    "passes within thirty seconds": (lambda _now: 40 * MB, GB, True),
    "passes within one": (lambda _now: GB, GB, True),
    "would take longer": (lambda _now: 28 * MB, GB, False),
    "comes to its pace, as TCP begins": (lambda now: min(100 * MB, MB * 2 ** (now / 0.2)), GB, True),
    "pauses, and is fast otherwise": (lambda now: 0 if 2 < now < 4 else 100 * MB, GB, True),
    "is nearly there": (lambda _now: MB, int(REST_SECONDS * MB), True),
}
"""A link, the size of an object, and whether it may pass."""


@pytest.mark.parametrize("name", LINKS)
def test_an_object_passes_where_that_takes_no_longer_than_it_may(name: str) -> None:
    link, size_bytes, passes = LINKS[name]
    assert (pass_over(link, size_bytes)[0] == size_bytes) is passes


GIVEN_UP: dict[str, tuple[Callable[[float], float], float, float]] = {
    "100 kB/s": (lambda _now: 100_000, 2.1, 210_000),
    "2 MB/s": (lambda _now: 2 * MB, 2.1, 4.2 * MB),
    "25 MB/s": (lambda _now: 25 * MB, 2.1, 84 * MB),
    "hidden by the buffers of the kernel": (lambda now: 100 * MB if now < 0.1 else 2 * MB, 2.1, 14 * MB),
    "becomes slow": (lambda now: 80 * MB if now < 3 else MB, 15, 300 * MB),
}
"""A link that is too slow, and after how many seconds and bytes it is known to be."""


@pytest.mark.parametrize("name", GIVEN_UP)
def test_a_slow_connection_is_given_up_soon(name: str) -> None:
    link, most_seconds, most_bytes = GIVEN_UP[name]
    passed, seconds = pass_over(link, GB)
    assert (seconds < most_seconds, passed <= most_bytes) == (True, True)


def test_a_write_that_begins_anew_is_judged_anew() -> None:
    trial = LinkTrial(GB)
    trial.note(MB, 0.0)
    trial.note(MB, 1.9)
    trial.begin()
    trial.note(MB, 2.0)
    trial.note(MB, 3.9)
    with pytest.raises(TooSlow, match=f"after {3 * MB} bytes"):
        trial.note(MB, 4.0)


def test_latency_is_no_slowness() -> None:
    trial = LinkTrial(GB)
    trial.note(MB, 5.0)
    trial.note(100 * MB, 6.0)
    trial.note(100 * MB, 7.0)
