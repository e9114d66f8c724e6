"""Lanes: what is usual takes no task, and whatever else comes is made the same of as in a task."""

from collections import Counter
from itertools import repeat

import pytest

from support.s3.lanes import Seen, collect_behaviours, copy_facing

pytestmark = pytest.mark.usefixtures("no_pauses")
BEHAVIOURS = collect_behaviours()


def test_what_a_server_always_says_comes_to_the_same_in_a_lane_and_in_a_task(subtests: pytest.Subtests) -> None:
    for name, behaviour in BEHAVIOURS.items():
        with subtests.test(name):
            careful = copy_facing(repeat(behaviour), in_lanes=False)
            seen = copy_facing(repeat(behaviour), in_lanes=True)
            assert seen.results == careful.results
            hold_no_more_than_one_more(seen, careful)


def hold_no_more_than_one_more(seen: Seen, careful: Seen) -> None:
    """The first request for each object may have been sent once more, and is counted then."""
    again = Counter(seen.sent) - Counter(careful.sent)
    assert not Counter(careful.sent) - Counter(seen.sent)
    assert set(again.values()) <= {1}
    assert len(again) <= len(seen.results)
    assert not careful.counts - seen.counts
    assert sum((seen.counts - careful.counts).values()) <= len(again)
