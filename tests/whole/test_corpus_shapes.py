"""Each shape of table that users have met works from check to revert."""

import pytest

from corpus.shapes import SHAPES, Shape
from support.entries.entry_table import Record
from support.entries.migration import Migration
from support.processes.cli import well
from support.queue.queue_runs import outcomes, revert, verify


@pytest.mark.by_day("triggers", "hash partitions", "a view's table", "shared objects")
@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_works(name: str, migration: Migration) -> None:
    shape = SHAPES[name]
    before = make(migration, shape)
    objects = {row["path"] for row in before if is_legacy(migration, row)}
    legacy = migration.legacy.listing()
    well(migration.run("check"))

    migration.migrate()
    migration.check_balance()
    assert sum(outcomes(migration.batches()).values()) == sum(is_legacy(migration, row) for row in before)
    assert outcomes(migration.batches()).keys() <= {"migrated", "kept"}
    assert read(migration) == [{**row, "path": move(migration, row["path"])} for row in before]
    assert {key: migration.production.read(move(migration, key) or "") for key in objects} == {
        key: f"body of {key}".encode() for key in objects
    }
    assert outcomes(verify(migration)).keys() == {"kept"}
    assert outcomes(revert(migration)).keys() == {"migrated"}
    migration.check_balance()
    assert read(migration) == before
    assert migration.legacy.listing() == legacy


def make(migration: Migration, shape: Shape) -> list[Record]:
    """Make a shape's table, objects and plan, and return its rows."""
    for statement in ("set search_path = public", *shape.statements):
        migration.execute(statement)
    migration.execute("set datestyle = ISO")  # for the test; workers meet what the database has
    migration.plan["entries"][0].update({"table": "shapes", **shape.entries})
    migration.write_plan()
    rows = read(migration)
    for key in {row["path"] for row in rows if row["path"]}:
        migration.legacy.put(key, f"body of {key}".encode())
    return rows


def read(migration: Migration) -> list[Record]:
    """Return the ids and paths of all rows."""
    return migration.execute('select id::text, path from shapes order by id::text collate "C", path')


def is_legacy(migration: Migration, row: Record) -> bool:
    (entries,) = migration.plan["entries"]
    return bool(row["path"]) and row["path"].startswith(entries["from"])


def move(migration: Migration, key: str | None) -> str | None:
    """Return what a path becomes."""
    (entries,) = migration.plan["entries"]
    return entries["to"] + key.removeprefix(entries["from"]) if key and key.startswith(entries["from"]) else key
