"""`rowferry enqueue` stores a changed plan also where there is nothing new to enqueue."""

from support.entries.migration import Migration
from support.processes.cli import well


def test_a_changed_plan_is_stored_though_nothing_is_new(migration: Migration) -> None:
    migration.fill(4).write_plan()
    assert migration.run_here("enqueue", "--yes").returncode == 0
    same = migration.run_here("enqueue", "--yes")
    assert same.stdout.endswith("\nNothing to enqueue.\n")
    assert "changed plan" not in same.stdout
    migration.plan["database"] = {"max_rows_per_second": 100}
    migration.write_plan()
    shown = migration.run_here("enqueue", "--dry-run")
    assert (shown.returncode, stored_bound(migration)) == (0, None)
    assert "The changed plan of migration avatars is stored" in well(migration.run_here("enqueue", "--yes")).stdout
    assert stored_bound(migration) == 100
    assert len(migration.batches()) == 1


def stored_bound(migration: Migration) -> float | None:
    (row,) = migration.execute("select plan #>> '{database, max_rows_per_second}' as bound from rowferry.migration")
    return None if row["bound"] is None else float(row["bound"])
