"""Copies of objects whose rows stay: which of two objects wins, and that no other is ever written over."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rowferry.batch import Outcome
from rowferry.errors import ObjectNotFound, ServerFault
from rowferry_lab.servers.fake_s3_http import Request
from rowferry_lab.servers.fake_s3_store import StoredObject
from rowferry_worker.objects.copy import CopyOptions
from rowferry_worker.objects.repeated_copy import copy_repeatedly
from rowferry_worker.objects.transfer import CopyMethod, ServerCopy, StreamCopy
from support.s3.copies import NEW, OLD, Support, options_of
from support.s3.fake_buckets import WRITING, FakeBuckets, stored

SWITCHED = datetime(2026, 11, 22, 12, 0, 5, tzinfo=UTC)


@pytest.fixture(params=[ServerCopy("legacy"), StreamCopy()], ids=["server", "stream"])
def method(request: pytest.FixtureRequest) -> CopyMethod:
    return request.param


def written_at(body: bytes, second: int) -> StoredObject:
    """Return an object that was written at this second of 12:00."""
    return stored(body, written=SWITCHED.replace(second=second).timestamp())


def copy(fake: FakeBuckets, options: CopyOptions) -> Outcome:
    return fake.run(copy_repeatedly(fake.s3, options, OLD, NEW)).outcome


@pytest.mark.parametrize("support", ["unknown", "supported", "ignored"])
@pytest.mark.parametrize(
    ("legacy_second", "switched_at", "outcome"),
    [
        (30, None, Outcome.MIGRATED),
        (30, SWITCHED, Outcome.MIGRATED),
        (10, None, Outcome.CONFLICT),  # in the same second
        (10, SWITCHED, Outcome.CONFLICT),
        (9, None, Outcome.CONFLICT),
        (9, SWITCHED, Outcome.KEPT),
        (9, SWITCHED.replace(second=11), Outcome.CONFLICT),
    ],
)
def test_the_older_object_is_replaced_and_no_other(
    legacy_second: int, switched_at: datetime | None, outcome: Outcome, support: Support, method: CopyMethod
) -> None:
    honours = WRITING if support == "supported" else ()
    fake = FakeBuckets(honours, {OLD: written_at(b"legacy", legacy_second)}, {NEW: written_at(b"another", 10)})
    options = replace(options_of(method, support, "older"), switched_at=switched_at)
    assert copy(fake, options) is outcome
    assert fake.production[NEW].body == (b"legacy" if outcome is Outcome.MIGRATED else b"another")


@pytest.mark.parametrize("support", ["supported", "ignored"])
def test_an_object_that_comes_before_the_write_is_left_alone(support: Support, method: CopyMethod) -> None:
    honours = WRITING if support == "supported" else ()
    fake = FakeBuckets(honours, {OLD: written_at(b"legacy", 30)}, {NEW: written_at(b"another", 10)})

    def write_meanwhile(request: Request) -> None:
        """Once the two objects were compared, by the HEAD of the legacy one, the application writes a third."""
        if request.operation == "HeadObject" and request.bucket == "legacy":
            fake.production[NEW] = written_at(b"the application's", 31)

    fake.interfere = write_meanwhile
    with pytest.raises(ServerFault) as caught:
        copy(fake, options_of(method, support, "older"))
    assert caught.value.retryable
    assert fake.production[NEW].body == b"the application's"


def test_a_legacy_object_that_is_replaced_during_its_copy_is_copied_again(method: CopyMethod) -> None:
    fake = FakeBuckets(WRITING, {OLD: written_at(b"first", 1)})
    options = replace(options_of(method, "supported", "older"), looks_first=True)

    def replace_meanwhile(request: Request) -> None:
        """When the copy is there, and before it is looked at, the legacy object is another."""
        if fake.legacy[OLD].body == b"first" and NEW in fake.production:
            fake.legacy[OLD] = written_at(b"second", 1)

    fake.interfere = replace_meanwhile
    assert copy(fake, options) is Outcome.MIGRATED
    assert fake.production[NEW].body == b"second"


def test_in_later_passes_an_equal_object_is_kept_by_two_heads(method: CopyMethod) -> None:
    fake = FakeBuckets(WRITING, {OLD: written_at(b"legacy", 1)}, {NEW: written_at(b"legacy", 2)})
    options = replace(options_of(method, "supported", "older"), looks_first=True)
    assert copy(fake, options) is Outcome.KEPT
    assert fake.operations == ["HeadObject production", "HeadObject legacy"]


def test_an_object_on_neither_side_is_missing(method: CopyMethod) -> None:
    fake = FakeBuckets(WRITING)
    with pytest.raises(ObjectNotFound):
        copy(fake, options_of(method, "supported", "older"))
    fake.production[NEW] = written_at(b"the application's", 1)
    assert copy(fake, options_of(method, "supported", "older")) is Outcome.KEPT
