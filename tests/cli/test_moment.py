"""When `rowferry cutover` names the moment to switch, and what it says of a pass."""

from typing import Any

import pytest

from rowferry_cli.cutover.moment import PassResult, find_moment


def made(number: int, seconds: float, copied: int, **more: Any) -> PassResult:
    return PassResult(number, seconds, 100, copied, 4096, 3, **more)


def test_a_pass_that_copies_nothing_is_the_moment() -> None:
    assert find_moment([made(1, 60, 100), made(2, 5, 0)]) == "pass 2 took 5.0 s and copied 0 objects"


def test_the_second_pass_may_be_the_moment_already() -> None:
    moment = find_moment([made(1, 60, 100), made(2, 48, 2)])
    assert moment == "pass 2 took 48.0 s and copied 2 objects, and the one before took 60.0 s: they get no shorter"


@pytest.mark.parametrize(("seconds", "is_moment"), [(79.9, False), (80, True), (81, True), (500, True)])
def test_four_fifths_of_the_time_before_is_no_shorter(seconds: float, is_moment: bool) -> None:
    assert (find_moment([made(1, 100, 9), made(2, seconds, 9)]) is not None) == is_moment


def test_a_pass_is_held_against_the_one_before_it_and_no_other() -> None:
    assert find_moment([made(1, 10, 9), made(2, 100, 9), made(3, 50, 9)]) is None


def test_after_a_pass_that_was_continued_the_moment_is_not_now() -> None:
    """Whatever the one before it was."""
    assert find_moment([made(1, 60, 0), made(2, 60, 0, is_whole=False)]) is None


def test_a_pass_that_was_continued_is_left_out_where_two_are_compared() -> None:
    assert find_moment([made(1, 60, 9), made(2, 1, 9, is_whole=False), made(3, 30, 9)]) is None
    assert find_moment([made(1, 60, 9), made(2, 100, 9, is_whole=False), made(3, 59, 9)]) is not None


def test_a_pass_says_what_it_took_and_why_later_ones_take_more() -> None:
    assert str(made(2, 1234.56, 7)) == "Pass 2: 1,234.6 s, 100 entries, 7 copied, 3 left"
    assert str(made(2, 1, 7, held_back_by="process 9")) == (
        "Pass 2: 1.0 s, 100 entries, 7 copied, 3 left; later passes take more than they had to, because of process 9"
    )


def test_a_script_gets_each_figure_of_a_pass() -> None:
    assert made(2, 1.23456, 7, held_back_by="process 9").as_document() == {
        "pass": 2,
        "seconds": 1.235,
        "entries": 100,
        "copied": 7,
        "bytes": 4096,
        "left": 3,
        "held_back_by": "process 9",
    }
