"""`rowferry estimate` counts objects without rows by a listing, and the requests that list them for the workers."""

from collections.abc import Callable, Iterator

import pytest

from rowferry.batch import DEFAULT_BATCH_SIZE
from rowferry_cli.estimate import listings
from support.entries.estimates import estimate
from support.entries.estimating import FakeMigration, fake_migration
from support.entries.listed_objects import PREFIX, name_objects, put_many, put_objects
from support.entries.migration import Migration

LISTED = ("legacy", "ListObjectsV2")


@pytest.fixture
def fake(make_migration: Callable[..., Migration]) -> Iterator[FakeMigration]:
    with fake_migration(make_migration, server_side=True) as found:
        name_objects(found.migration)
        yield found


def test_listed_objects_and_the_requests_that_list_them_are_counted(fake: FakeMigration) -> None:
    migration = fake.migration
    put_many(migration, fake.legacy, 1100)
    put_objects(migration, ["other"], prefix="x/")
    found = estimate(migration)
    assert found["entries"]["estimate"] == found["entries"]["high"] == 1100
    assert list(found["entries"]["tables"]) == ["variants/*"]
    assert found["bytes"]["estimate"] > 0
    migration.enqueue(DEFAULT_BATCH_SIZE)
    with fake.counting() as sent:
        migration.work()
    assert found["requests"]["legacy"]["ListObjectsV2"] == sent[LISTED]
    assert found["requests"]["production"]["CopyObject"] == pytest.approx(sent["production", "CopyObject"], abs=1)


@pytest.mark.soak
def test_a_listing_that_was_given_up_says_that_there_are_more(
    fake: FakeMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_many(fake.migration, fake.legacy, 1100)
    plan = fake.migration.read_plan()
    monkeypatch.setattr(listings, "LISTED_WITHIN", listings.LISTED_WITHIN * 0)
    (sample,) = listings.sample_objects(plan, 10, lambda _: None)
    assert (sample.count, sample.is_whole, len(sample.keys)) == (1000, False, 10)
    assert all(legacy.startswith(PREFIX) for legacy, _ in sample.keys)


def test_a_prefix_without_objects_needs_no_more_than_a_listing(fake: FakeMigration) -> None:
    assert estimate(fake.migration)["entries"]["estimate"] == 0
