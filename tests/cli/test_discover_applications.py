"""`rowferry plan --discover` finds what a plan written by hand names, in applications that it does not know."""

import pytest

from support.docs.doc_pages import ROOT, read_table
from support.entries.discovered_plan import DiscoveredMigration
from support.entries.discovering import Discovering, on_moto
from support.entries.unseen_applications import NAMES, UnseenApplication
from support.processes.cli import well

MOST_REQUESTS = 3_000
"""Of a discovery in a database of this size."""


@pytest.mark.by_day("canvas", "documenso", "langfuse", "odoo")
@pytest.mark.parametrize("name", NAMES)
def test_the_objects_of_an_application_are_found_and_the_plan_passes_check(name: str, found: Discovering) -> None:
    application = UnseenApplication(name, found)
    well(found.discover())
    application.complete_plan()
    well(found.run("check"))
    by_hand, discovered = application.read_by_hand(), application.read_discovered()
    assert application.list_objects(by_hand) - application.list_objects(discovered) == set()
    assert application.list_spare(discovered) == set()


@on_moto
@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_an_application_is_migrated_by_the_plan_that_is_discovered(name: str, found: Discovering) -> None:
    """No row is wrong, and what stays behind is told."""
    application = UnseenApplication(name, found)
    migration = DiscoveredMigration(application, found)
    assert migration.requests <= MOST_REQUESTS
    assert list(migration.find_wrong_rows()) == []
    assert application.keys - migration.moved - migration.named == set()
    assert f"{len(migration.moved)} of {len(application.keys)}" in read_page()[name]
    assert bool(migration.named) == ("named" in read_page()[name])


def test_the_page_has_every_application_of_the_corpus() -> None:
    assert read_page().keys() >= {*NAMES}


def read_page() -> dict[str, str]:
    """Return what docs/internals/proofs.md says of each application, by the name of its file."""
    rows = read_table(ROOT / "docs" / "internals" / "proofs.md", "What `--discover` finds")
    return {title.split(" with ")[0].removesuffix(" *").lower().replace(" ", "_"): moved for title, _, moved in rows}
