"""What the auditor of `switch` and `rewrite` takes for a fault, and that the clock of its S3 server is wrong."""

from contextlib import closing
from copy import copy
from datetime import timedelta

import pytest

from support.s3.buckets import Buckets, connect_s3
from torture.switching.history import Entry, Histories, History, judge
from torture.switching.wrong_clock import WrongClock

ENTRY: Entry = ("files", 1)
FIRST, SECOND, THIRD = b"first", b"second", b"third"


@pytest.fixture
def histories() -> Histories:
    """An object that was replaced in production, and is about to be replaced again."""
    histories = Histories()
    for body, is_legacy in ((FIRST, True), (SECOND, False)):
        histories.begin(ENTRY, body, ("f1",))
        histories.acknowledge(ENTRY, body, is_legacy=is_legacy)
    histories.begin(ENTRY, THIRD, ())
    return histories


def find(histories: Histories) -> History:
    found = histories.of(ENTRY)
    assert found is not None
    return found


@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize("body", [SECOND, THIRD])
def test_the_newest_version_and_one_being_written_are_right(histories: Histories, body: bytes, is_over: bool) -> None:
    known = find(histories)
    assert judge(known, known, body, from_legacy=False, is_over=is_over) is None


def test_an_old_version_is_right_on_the_other_side_until_the_end(histories: Histories) -> None:
    known = find(histories)
    assert judge(known, known, FIRST, from_legacy=True, is_over=False) is None
    assert judge(known, known, FIRST, from_legacy=True, is_over=True) == "is old"
    assert judge(known, known, FIRST, from_legacy=False, is_over=False) == "is old"


def test_what_is_missing_or_was_never_written_is_a_fault(histories: Histories) -> None:
    known = find(histories)
    assert judge(known, known, None, from_legacy=False, is_over=False) == "is missing"
    assert judge(known, known, b"other", from_legacy=False, is_over=False) == "has 5 wrong bytes"


def test_a_version_that_was_replaced_between_two_looks_is_right(histories: Histories) -> None:
    before = find(histories)
    histories.acknowledge(ENTRY, THIRD, is_legacy=False)
    after = find(histories)
    assert judge(before, after, SECOND, from_legacy=False, is_over=True) is None
    assert judge(after, after, SECOND, from_legacy=False, is_over=True) == "is old"


@pytest.mark.parametrize("seconds", [5, -5])
def test_a_wrong_clock_shifts_all_times_of_a_server(moto_buckets: Buckets, seconds: int) -> None:
    legacy, client = moto_buckets.legacy, moto_buckets.client
    client.put_object(Bucket=legacy, Key="a b", Body=b"bytes")
    direct = client.head_object(Bucket=legacy, Key="a b")["LastModified"]
    with WrongClock(moto_buckets.server.endpoint_url, timedelta(seconds=seconds)).running() as proxy:
        behind = copy(moto_buckets.server)
        behind.endpoint_url = proxy.endpoint_url
        with closing(connect_s3(behind)) as shifted:
            head = shifted.head_object(Bucket=legacy, Key="a b")["LastModified"]
            (listed,) = shifted.list_objects_v2(Bucket=legacy)["Contents"]
    assert head - direct == timedelta(seconds=seconds)
    assert listed["LastModified"].replace(microsecond=0) == head
    assert proxy.responses == 2
