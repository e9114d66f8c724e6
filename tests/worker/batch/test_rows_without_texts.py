"""Entries without a `key`: SQL of the plan says which objects a row has, and no text is read or written."""

from typing import Any

import pytest

from support.entries.checks import check, problems
from support.entries.migration import Migration
from support.queue.queue_runs import outcomes, revert, verify

KEYS = "'blobs/' || left(e.id::text, 2) || '/' || e.id"
IDS = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(16, 20)]


@pytest.fixture
def blobs(any_migration: Migration) -> Migration:
    """Four rows whose objects are named after their ids, and a column that says where they are."""
    any_migration.execute("create table public.blobs (id uuid primary key, backend text not null default 'fs')")
    for one in IDS:
        any_migration.execute("insert into public.blobs values (%s)", (one,))
        any_migration.legacy.put(f"blobs/{one[:2]}/{one}", f"body of {one}".encode())
    return any_migration


def plan(migration: Migration, **fields: Any) -> None:
    shared = {"table": "public.blobs", "id": "id", "legacy_object": "blobs/", "production_object": "blobs/"}
    migration.plan["entries"] = [{**shared, "objects": KEYS, **fields}]


def backends(migration: Migration) -> list[str]:
    return [row["backend"] for row in migration.execute("select backend from public.blobs order by id")]


def test_a_column_of_moved_tells_where_the_objects_are(blobs: Migration) -> None:
    plan(blobs, moved={"backend": ["fs", "s3"]})
    assert problems(blobs) == []
    assert any("public.blobs: 4 legacy objects with usable production keys" in found.what for found in check(blobs))
    assert blobs.migrate() == {"migrated": 4}
    assert backends(blobs) == ["s3"] * 4
    assert len(blobs.production.listing()) == 4
    assert outcomes(verify(blobs)) == {"kept": 4}
    assert outcomes(revert(blobs)) == {"migrated": 4}
    assert backends(blobs) == ["fs"] * 4


def test_the_id_alone_may_be_the_key_where_rows_stay(blobs: Migration) -> None:
    plan(blobs, rows="stay")
    assert problems(blobs) == []
    assert blobs.migrate() == {"migrated": 4}
    assert backends(blobs) == ["fs"] * 4


def test_optional_objects_need_no_required_ones(blobs: Migration) -> None:
    """A row with none of its objects is settled, and one whose expression yields nothing is no entry."""
    blobs.legacy.delete(f"blobs/{IDS[0][:2]}/{IDS[0]}")
    plan(blobs, moved={"backend": ["fs", "s3"]}, optional=f"case when id <> '{IDS[3]}' then {KEYS} end")
    del blobs.plan["entries"][0]["objects"]
    assert problems(blobs) == []
    assert blobs.migrate() == {"migrated": 2, "kept": 1}
    assert backends(blobs) == ["s3", "s3", "s3", "fs"]
    assert sum(batch["entry_count"] for batch in verify(blobs)) == 3


def test_two_entries_of_one_table_may_copy_other_objects(blobs: Migration) -> None:
    plan(blobs, rows="stay")
    more = {"name": "thumbs", "objects": "'blobs/thumb/' || id"}
    blobs.plan["entries"].append({**blobs.plan["entries"][0], **more})
    for one in IDS:
        blobs.legacy.put(f"blobs/thumb/{one}", b"thumb")
    assert problems(blobs) == []
    assert blobs.migrate() == {"migrated": 8}


def test_the_row_is_e_inside_a_subquery_over_its_own_table(migration: Migration) -> None:
    """Dataverse: a file's key begins with what its dataset, a row of the same table, is called."""
    migration.execute(
        "create table public.dvobject (id bigint primary key, owner_id bigint, authority text, store text, name text)"
    )
    migration.execute(
        "insert into public.dvobject values (1, null, 'doi/A', null, null), (2, null, 'doi/B', null, null)"
    )
    migration.execute("insert into public.dvobject values (3, 1, null, 'old', 'x'), (4, 2, null, 'old', 'y')")
    for key in ("doi/A/x", "doi/B/y"):
        migration.legacy.put(key, key.encode())
    plan(migration, table="public.dvobject", legacy_object="", production_object="", moved={"store": ["old", "new"]})
    migration.plan["entries"][0]["objects"] = (
        "(select owner.authority || '/' || e.name from public.dvobject as owner where owner.id = e.owner_id)"
    )
    assert problems(migration) == []
    assert migration.migrate() == {"migrated": 2}
    assert migration.production.read("doi/A/x") == b"doi/A/x"
    assert outcomes(verify(migration)) == {"kept": 2}
    assert outcomes(revert(migration)) == {"migrated": 2}
    assert [row["store"] for row in migration.execute("select store from public.dvobject where id > 2")] == ["old"] * 2


def test_a_name_that_the_row_hides_is_answered_with_its_alias(migration: Migration) -> None:
    migration.execute("create table public.dvobject (id bigint primary key, owner_id bigint, store text)")
    plan(migration, table="public.dvobject", moved={"store": ["old", "new"]})
    migration.plan["entries"][0]["objects"] = (
        "(select o.store from public.dvobject as o where o.id = dvobject.owner_id)"
    )
    (found,) = [finding for finding in check(migration) if finding.level == "problem"]
    assert "invalid reference to FROM-clause entry" in found.what
    assert found.remedy == "name the row `e`, as in `e.id`"


def test_a_check_says_where_the_hash_comes_from_that_postgresql_lacks(blobs: Migration) -> None:
    plan(blobs, moved={"backend": ["fs", "s3"]})
    blobs.plan["entries"][0]["objects"] = "'blobs/' || encode(digest(id::text, 'sha1'), 'hex')"
    (found,) = [finding for finding in check(blobs) if finding.level == "problem"]
    assert "function digest(text, unknown) does not exist" in found.what
    assert "run `create extension pgcrypto`" in found.remedy
