"""What a check has seen the servers do is kept for the workers."""

from typing import Any

from support.entries.migration import Migration


def read_facts(migration: Migration) -> dict[str, bool]:
    return {row["fact"]: row["holds"] for row in migration.execute("select fact, holds from rowferry.server_fact")}


def test_a_check_records_whether_copies_keep_tags(moto_migration: Migration) -> None:
    migration = moto_migration
    migration.fill(1)
    migration.write_plan()
    assert migration.run_here("check").returncode == 0
    assert read_facts(migration) == {"CopyObject keeps tags": True}


def test_migrate_records_it_for_its_workers_and_prune_forgets_it(moto_migration: Migration) -> None:
    migration = moto_migration
    migration.plan["production"]["tags"] = "none"
    migration.fill(1)
    migration.write_plan()
    log: Any = str(migration.folder / "log")
    assert migration.run_here("migrate", "--yes", "--processes", "1", "--log-file", log).returncode == 0
    assert read_facts(migration) == {"CopyObject keeps tags": True, "CopyObject leaves tags out": True}
    migration.execute("delete from rowferry.batch_queue")
    migration.execute("update rowferry.migration set created_at = now() - interval '1 day', updated_at = created_at")
    migration.execute("delete from rowferry.event")
    migration.execute("select rowferry.prune_migrations('0')")
    assert read_facts(migration) == {}
