"""A plan that covers a part of the legacy bucket is told which folders it leaves behind, with their share."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rowferry.db.connection import connect
from rowferry.reports.coverage import Coverage, FolderCoverage, read_coverage, record_coverage
from rowferry_enqueue.checks.buckets import coverage, folders
from rowferry_enqueue.checks.buckets.coverage import find_coverage
from support.entries.checks import check
from support.entries.migration import Migration

STATE = {"from": "", "to": ""}


def look(migration: Migration) -> dict[str, tuple[int, int]]:
    """Return the objects of each folder, and how many of them nothing names."""
    with connect("check", autocommit=True) as connection:
        found = find_coverage(connection, migration.read_plan())
    return {one.folder: (one.objects, one.unnamed) for one in found.folders}


def put(migration: Migration, *keys: str) -> None:
    for key in keys:
        migration.legacy.put(key, b"body")


def test_a_check_names_the_folders_that_nothing_names_with_their_share(any_migration: Migration) -> None:
    any_migration.fill(4)
    put(any_migration, "lfs/a", "lfs/b/c", "packages/1", "README")
    (found,) = [finding for finding in check(any_migration) if "covers a part" in finding.what]
    assert found.level == "note"
    assert "names 4 of 8 objects (50%), in lfs/: 2, * (in no folder): 1, packages/: 1" in found.what
    assert "[[objects]]" in found.remedy
    any_migration.plan["objects"] = [{"prefix": "lfs/"}, {"prefix": "packages/"}, {"prefix": "README"}]
    assert not [finding for finding in check(any_migration) if "covers a part" in finding.what]


def test_rows_that_have_moved_name_their_legacy_objects_still_and_those_beside_are_counted(
    migration: Migration,
) -> None:
    migration.fill(4).migrate()
    put(migration, "lfs/a")
    assert look(migration) == {"image/": (4, 0), "lfs/": (1, 1)}
    put(migration, *(f"image/u{number}/thumb.png" for number in range(1, 4)))
    assert look(migration) == {"image/": (7, 3), "lfs/": (1, 1)}


def test_less_than_a_tenth_of_a_folder_is_taken_for_leftovers_of_deleted_rows() -> None:
    found = Coverage((FolderCoverage("image/", 100, 9), FolderCoverage("lfs/", 10, 0)))
    assert found.describe() is None
    assert replace(found, folders=(FolderCoverage("image/", 100, 10),)).describe() is not None


URL = {"from": "https://old/", "to": "https://new/", "legacy_object": "media/", "production_object": "m/"}
FORMS: tuple[tuple[dict[str, Any], str], ...] = (
    ({**STATE, "legacy_object": "media/", "production_object": "media/", "rows": "stay"}, "a b.png"),
    ({**URL, "encoding": "percent"}, "https://old/a%20b.png"),
    ({"from": "x", "to": "y", "legacy_object": "", "objects": "'media/a b.png'::text"}, "x"),
)


@pytest.mark.parametrize(("fields", "text"), FORMS)
def test_keys_are_looked_up_in_every_form(migration: Migration, fields: dict[str, Any], text: str) -> None:
    migration.add_row(1, text)
    put(migration, "media/a b.png", "media/c.png", "other/d.png")
    migration.plan["entries"][0].update(fields)
    assert look(migration) == {"media/": (2, 1), "other/": (1, 1)}


def test_one_folder_that_holds_all_is_opened_and_folders_that_are_named_after_ids_are_one(migration: Migration) -> None:
    put(migration, "app/uploads/one/1", "app/uploads/two/2")
    assert look(migration) == {"app/uploads/one/": (1, 1), "app/uploads/two/": (1, 1)}
    put(migration, *(f"{number}/x" for number in range(5)))
    assert look(migration) == {"app/": (2, 2), "0/ to 4/": (5, 5)}


def test_in_one_bucket_the_copies_are_not_left_behind(migration: Migration) -> None:
    migration.production = migration.legacy
    migration.plan["production"] = dict(migration.plan["legacy"])
    migration.fill(2).migrate()
    put(migration, "lfs/a")
    assert look(migration) == {"avatar/": (2, 0), "image/": (2, 0), "lfs/": (1, 1)}


def test_a_large_bucket_is_not_listed_whole(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is over at once: each folder is asked for once, at a few spots besides, and has at least so many."""

    def list_three(*given: Any, **more: Any) -> Any:
        return real(*given, **{**more, "max_keys": min(more.get("max_keys", 3), 3)})

    put(migration, *(f"lfs/{number:02}" for number in range(8)), "packages/1")
    monkeypatch.setattr(coverage, "WITHIN", timedelta(0))
    real = folders.list_keys
    monkeypatch.setattr(folders, "list_keys", list_three)
    with connect("check", autocommit=True) as connection:
        found = find_coverage(connection, migration.read_plan())
    counted = {one.folder: (one.objects, one.is_complete) for one in found.folders}
    assert counted == {"lfs/": (3, False), "packages/": (1, True)}
    assert "at least 4 of at least 4 objects, in lfs/: at least 3, packages/: 1" in (found.describe() or "")


def test_a_record_takes_the_place_of_the_one_before(migration: Migration) -> None:
    with connect("check", autocommit=True) as connection:
        assert read_coverage(connection, "avatars") == Coverage()
        record_coverage(connection, "avatars", Coverage((FolderCoverage("a/", 2, 2), FolderCoverage("b/", 9, 1))))
        record_coverage(connection, "avatars", Coverage((FolderCoverage("a/", 3, 1, is_exact=False),)))
        assert read_coverage(connection, "avatars") == Coverage((FolderCoverage("a/", 3, 1, is_exact=False),))
        assert not read_coverage(connection, "another").folders
