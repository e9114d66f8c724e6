"""However a large object's upload ends, no part stays at the production server, and none is recorded."""

import copy
from collections.abc import Callable, Iterator

import pytest

from support.entries.entry_table import FROM, TO
from support.entries.parts_site import BODY, NAME, PARTS, MakeMigration, Site, site_on_fake
from support.queue.queue_runs import outcomes


@pytest.fixture
def site(make_migration: MakeMigration) -> Iterator[Site]:
    with site_on_fake(make_migration) as site:
        site.given()
        yield site


def check_nothing_left(site: Site) -> None:
    assert site.migration.production.open_uploads() == []
    assert site.migration.execute("select * from rowferry.upload") == []
    site.migration.check_balance()


@pytest.mark.parametrize(
    ("happen", "outcome"),
    [
        (lambda site: site.migration.production.put(TO + NAME, BODY), "kept"),
        (lambda site: site.migration.production.put(TO + NAME, BODY[::-1]), "conflict"),
        (lambda site: site.migration.legacy.delete(FROM + NAME), "missing"),
        (lambda site: site.migration.legacy.put(FROM + NAME, b"small"), "kept"),
    ],
    ids=["the same object appears", "another object appears", "the legacy object vanishes", "it becomes small"],
)
def test_an_upload_that_is_not_needed_any_more_is_aborted(
    site: Site, happen: Callable[[Site], object], outcome: str
) -> None:
    site.take_turns(2)
    happen(site)
    stands = {key: site.migration.production.read(key) for key in site.migration.production.listing()}
    site.work(again=3)
    assert outcomes(site.object_batches()) == {outcome: 1}
    if outcome == "missing":
        assert outcomes(site.part_batches()) == {"migrated": 4, "changed": PARTS - 4}
    if outcome != "kept":
        assert {key: site.migration.production.read(key) for key in site.migration.production.listing()} == stands
    check_nothing_left(site)


def enqueue_second(site: Site, body: bytes) -> None:
    """Put an object of the same key in the queue, by a second migration with another legacy bucket."""
    migration, first = site.migration, site.migration.plan
    bucket = f"{migration.legacy.bucket}-2"
    migration.legacy.client.create_bucket(Bucket=bucket)
    migration.legacy.client.put_object(Bucket=bucket, Key=FROM + NAME, Body=body)
    migration.plan = copy.deepcopy(first)
    migration.plan["migration"]["name"], migration.plan["legacy"]["bucket"] = "second", bucket
    site.enqueue()
    migration.plan = first


@pytest.mark.parametrize(
    ("body", "outcome"), [(BODY, "kept"), (BODY + b"more", "conflict")], ids=["the same", "another"]
)
def test_two_migrations_to_one_key_do_not_abort_each_other(site: Site, body: bytes, outcome: str) -> None:
    """Each looks again while the parts of the other are sent."""
    enqueue_second(site, body)
    with site.migration.at_work(queues=["parts"]) as take_turn:
        for _ in range(20):
            site.migration.execute(
                "update rowferry.batch_queue set run_after = now() - interval '1 h' "
                "where status = 'INIT' and not payload ? 'upload'"
            )
            take_turn()
            take_turn()
            take_turn()
    assert outcomes(site.object_batches()) == {"migrated": 1, outcome: 1}
    assert site.begun() == 1
    site.check_arrived(BODY if site.migration.production.head(TO + NAME)["ContentLength"] == len(BODY) else body)
