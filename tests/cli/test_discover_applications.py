"""`rowferry plan --discover` finds what a plan written by hand names, in applications that it does not know."""

from pathlib import Path

import pytest

from support.entries.discovering import Discovering
from support.entries.unseen_applications import NAMES, UnseenApplication
from support.s3.buckets import Buckets


@pytest.mark.by_day("directus", "documenso", "langfuse", "misskey", "nocodb", "odoo")
@pytest.mark.parametrize("name", NAMES)
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
    assert application.list_keys(discovered) - application.keys == application.list_keys(by_hand) - application.keys
