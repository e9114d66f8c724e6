"""However a large object's upload ends, no part stays at the production server, and none is recorded."""

from collections.abc import Callable, Iterator

import pytest

from entry_table import FROM, TO
from parts_site import BODY, NAME, MakeMigration, Site, site_on_fake


@pytest.fixture
def site(make_migration: MakeMigration) -> Iterator[Site]:
    with site_on_fake(make_migration) as site:
        site.migration.add(1, NAME, BODY)
        site.enqueue()
        yield site


def work_on(site: Site) -> None:
    """Work until nothing is left; batches that wait for others do not."""
    for _ in range(4):
        site.work()
        site.migration.make_due()


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
    with site.migration.at_work(queues=["parts"]) as take_turn:
        take_turn()
        take_turn()
    happen(site)
    work_on(site)
    assert site.count(site.object_batches()) == {outcome: 1}
    check_nothing_left(site)
