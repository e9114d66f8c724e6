"""When `rowferry cutover` names the moment to switch, and what it says of a pass."""

from typing import Any

import pytest

from rowferry_cli.cutover.moment import PassResult, find_moment


def made(number: int, seconds: float, copied: int, **more: Any) -> PassResult:
    return PassResult(number, seconds, 100, copied, 4096, 3, **more)


COPIED_NOTHING = "pass 2 took 5.0 s and copied 0 objects"
NO_SHORTER = "pass 2 took 48.0 s and copied 2 objects, and the one before took 60.0 s: they get no shorter"
CONTINUED = {"is_whole": False}


@pytest.mark.parametrize(
    ("passes", "moment"),
    [
        pytest.param([made(1, 60, 100), made(2, 5, 0)], COPIED_NOTHING, id="nothing was copied"),
        pytest.param([made(1, 60, 100), made(2, 48, 2)], NO_SHORTER, id="four fifths of the time before"),
        pytest.param([made(1, 100, 9), made(2, 79.9, 9)], None, id="less than four fifths"),
        pytest.param([made(1, 10, 9), made(2, 100, 9), made(3, 50, 9)], None, id="the one before it, and no other"),
        pytest.param([made(1, 60, 0), made(2, 60, 0, **CONTINUED)], None, id="not after one that was continued"),
        pytest.param([made(1, 60, 9), made(2, 1, 9, **CONTINUED), made(3, 30, 9)], None, id="which is left out"),
        pytest.param([made(1, 60, 9), made(2, 100, 9, **CONTINUED), made(3, 59, 9)], ..., id="of what is compared"),
    ],
)
def test_the_moment_has_come_when_passes_get_no_shorter(passes: list[PassResult], moment: Any) -> None:
    found = find_moment(passes)
    assert found == moment or (moment is ... and found is not None)


def test_a_pass_says_what_it_took_and_why_later_ones_take_more_in_words_and_to_a_script() -> None:
    assert str(made(2, 1234.56, 7)) == "Pass 2: 1,234.6 s, 100 entries, 7 copied, 3 left"
    assert str(made(2, 1, 7, held_back_by="process 9")) == (
        "Pass 2: 1.0 s, 100 entries, 7 copied, 3 left; later passes take more than they had to, because of process 9"
    )
    assert made(2, 1.23456, 7, held_back_by="process 9").as_document() == {
        "pass": 2,
        "seconds": 1.235,
        "entries": 100,
        "copied": 7,
        "bytes": 4096,
        "left": 3,
        "held_back_by": "process 9",
    }
