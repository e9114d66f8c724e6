"""What a check has seen the servers do is kept for the workers."""

from typing import Any

from support.entries.migration import Migration

KEY = "image/u1/me.png"
KEYS = {"legacy object can be read": KEY, "production server has no tags": False}


def read_facts(migration: Migration) -> dict[str, bool | str]:
    rows = migration.execute("select fact, holds, key from rowferry.server_fact")
    return {row["fact"]: row["key"] or row["holds"] for row in rows}


def test_a_check_records_whether_copies_keep_tags_and_what_it_has_read(moto_migration: Migration) -> None:
    migration = moto_migration
    migration.fill(1).write_plan()
    assert migration.run_here("check").returncode == 0
    assert read_facts(migration) == {"CopyObject keeps tags": True, **KEYS}


def test_migrate_records_it_for_its_workers_and_prune_forgets_it(moto_migration: Migration) -> None:
    migration = moto_migration
    migration.plan["production"]["tags"] = "none"
    migration.fill(1).write_plan()
    log: Any = str(migration.folder / "log")
    assert migration.run_here("migrate", "--yes", "--processes", "1", "--log-file", log).returncode == 0
    tags = {"CopyObject keeps tags": True, "CopyObject leaves tags out": True}
    assert read_facts(migration) == {**tags, **KEYS, "production object was written": "avatar/u1/me.png"}
    migration.execute("delete from rowferry.batch_queue")
    migration.execute("update rowferry.migration set created_at = now() - interval '1 day', updated_at = created_at")
    migration.execute("delete from rowferry.event")
    migration.execute("select rowferry.prune_migrations('0')")
    assert read_facts(migration) == {}
