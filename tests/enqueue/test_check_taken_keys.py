"""A check compares the objects of legacy entries with those of production entries that have their keys already."""

import pytest

from rowferry.s3.responses import Response
from rowferry_enqueue.checks.buckets.taken_keys import compare_heads
from support.entries.checks import check, problems
from support.entries.migration import Migration


def collide(migration: Migration, legacy: bytes | None, production: bytes | None) -> None:
    """Have a legacy and a production entry whose objects have, or are to have, the same production key."""
    migration.insert({"1": "image/me.png", "2": "avatar/me.png"})
    if legacy is not None:
        migration.legacy.put("image/me.png", legacy)
    if production is not None:
        migration.production.put("avatar/me.png", production)


def test_a_different_object_of_a_production_entry_is_a_problem_but_for_those_who_overwrite(
    any_migration: Migration,
) -> None:
    collide(any_migration, b"one", b"two")
    for more in ({}, {"on_conflict": "fail"}):
        (found,) = problems(any_migration, **more)
        assert "1 legacy key becomes one that production entries have already; 1 compared: 1 different" in found
    assert problems(any_migration, on_conflict="overwrite") == []


@pytest.mark.parametrize(("legacy", "production"), [(b"same", b"same"), (None, b"one"), (b"one", None)])
def test_a_row_whose_twin_has_moved_already_is_no_problem(
    migration: Migration, legacy: bytes | None, production: bytes | None
) -> None:
    collide(migration, legacy, production)
    migration.enqueue()  # a missing object is no sign of a wrong plan any more
    assert problems(migration) == []


def test_objects_are_compared_by_size_and_etag() -> None:
    one = Response(200, {"content-length": "5", "etag": '"1"'})
    assert compare_heads(one, one) == "identical"
    assert compare_heads(one, Response(200, {"content-length": "6", "etag": '"1"'})) == "different"
    assert compare_heads(one, Response(200, {"content-length": "5", "etag": '"1-2"'})) == "undecided"


def test_only_the_first_thousand_collisions_are_compared(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowferry_enqueue.checks.buckets.taken_keys.MAX_COMPARED", 2)
    for number in range(3):
        migration.insert({str(number): f"image/{number}", str(10 + number): f"avatar/{number}"})
    found = [finding.what for finding in check(migration)]
    assert any("3 legacy keys become some that production entries have already; 2 compared" in words for words in found)
