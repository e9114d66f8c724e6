"""Tables whose triggers write more than the update says, or whose rows lie in partitions, work from check to revert."""

import pytest

from support.entries.entry_table import FROM, TO, Record, keyed
from support.entries.migration import Migration
from support.processes.cli import well
from support.queue.queue_runs import outcomes, revert, verify

SHAPES = {
    "triggers": (
        "create table shapes (id bigint primary key, path text, touched integer not null default 0)",
        "create table log (id bigint, old text, new text)",
        "create function note() returns trigger language plpgsql as $$ begin new.touched := old.touched + 1; "
        "insert into log values (new.id, old.path, new.path); return new; end $$",
        "create trigger note before update on shapes for each row execute function note()",
    ),
    "hash partitions": (
        "create table shapes (id bigint primary key, path text) partition by hash (id)",
        *(f"create table shapes_{n} partition of shapes for values with (modulus 3, remainder {n})" for n in range(3)),
    ),
}
"""Statements that make a table `shapes`."""
SHARED = "insert into shapes (id, path) select i, 'image/' || i % 7 from generate_series(1, 40) as i"
"""Rows of which several point at one object."""


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_works(name: str, migration: Migration) -> None:
    for statement in ("set search_path = public", *SHAPES[name], SHARED):
        migration.execute(statement)
    migration.plan_entries("shapes", **keyed("path"))
    migration.write_plan()
    before = read(migration)
    keys = {row["path"] for row in before}
    for key in keys:
        migration.legacy.put(key, f"body of {key}".encode())
    legacy = migration.legacy.listing()
    well(migration.run("check"))

    migration.migrate()
    migration.check_balance()
    assert sum(outcomes(migration.batches()).values()) == len(before)
    assert outcomes(migration.batches()).keys() <= {"migrated", "kept"}
    assert read(migration) == [{**row, "path": row["path"].replace(FROM, TO)} for row in before]
    for key in keys:
        assert migration.production.read(key.replace(FROM, TO)) == f"body of {key}".encode()
    assert outcomes(verify(migration)).keys() == {"kept"}
    assert outcomes(revert(migration)).keys() == {"migrated"}
    migration.check_balance()
    assert read(migration) == before
    assert migration.legacy.listing() == legacy


def read(migration: Migration) -> list[Record]:
    """Return the ids and paths of all rows."""
    return migration.execute("select id, path from shapes order by id")
