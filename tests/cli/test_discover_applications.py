"""`rowferry plan --discover` finds what a plan written by hand names, in applications that it does not know."""

from pathlib import Path

import pytest

from support.entries.discovering import Discovering
from support.entries.unseen_applications import NAMES, UnseenApplication
from support.s3.buckets import Buckets


@pytest.mark.by_day("baserow", "canvas", "documenso", "gitea", "langfuse", "nocodb", "odoo", "penpot")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "synapse"])  # no id names its rows
def test_the_objects_of_an_application_are_found_and_the_plan_passes_check(
    name: str, database: str, moto_buckets: Buckets, tmp_path: Path
) -> None:
    found = Discovering(database, moto_buckets, tmp_path)
    application = UnseenApplication(name, found)
    told = found.discover()
    assert told.returncode == 0, told.stderr
    application.complete_plan()
    checked = found.run("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    by_hand, discovered = application.read_by_hand(), application.read_discovered()
    assert application.list_objects(by_hand) - application.list_objects(discovered) == set()
    missing, missing_by_hand = (application.list_keys(plan) - application.keys for plan in (discovered, by_hand))
    assert len(missing) <= len(missing_by_hand), sorted(missing)[:3]


def test_where_no_rule_is_found_the_folders_are_named(database: str, moto_buckets: Buckets, tmp_path: Path) -> None:
    """The rows of Synapse have no id that is never null."""
    found = Discovering(database, moto_buckets, tmp_path)
    UnseenApplication("synapse", found)
    told = found.discover()
    assert told.returncode == 2
    assert "[[objects]]" in told.stderr
    assert "local_content/" in told.stderr
    assert not found.plan_path.exists()
