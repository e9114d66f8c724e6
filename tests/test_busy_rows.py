"""Rows that others lock, rewrite or delete meanwhile are never overwritten, and never hold up the rest."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from migration import Migration
from rivals import uncommitted, work_while_locked
from rowferry.session import LOCK_TIMEOUT


def test_a_locked_row_is_put_back_and_migrated_later(any_migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCK_TIMEOUT, "0.3")
    any_migration.fill(10)
    any_migration.enqueue()
    with uncommitted(any_migration, "select from public.avatars where id = 4 for update"):
        any_migration.work()
        assert any_migration.verdicts() == ["RETRY"]
        assert any_migration.counts() == {"migrated": 9, "failed": 1}
        assert any_migration.failure_of(4)[2] == "another session holds a lock on the row"
        any_migration.audit(legacy_left=[4])
    any_migration.make_due()
    any_migration.work()
    assert any_migration.counts() == {"migrated": 9, "kept": 1}
    assert any_migration.statuses() == {"DONE"}
    any_migration.audit()


def test_rows_rewritten_and_deleted_meanwhile_are_never_overwritten(any_migration: Migration) -> None:
    """Another client rewrites and deletes rows for as long as the migration runs, through all its passes."""
    any_migration.fill(120)
    for number in range(1, 41):
        any_migration.legacy.put(f"image/new{number}.png", b"new")
    any_migration.enqueue(10)
    written: dict[str, str | None] = {}

    def disturb() -> None:
        with psycopg.connect(any_migration.dsn, autocommit=True) as other:
            for number in range(1, 121):
                if number % 3 == 0:
                    other.execute("delete from public.avatars where id = %s", (number,))
                    written[str(number)] = None
                elif number % 3 == 1:
                    key = f"image/new{number // 3 + 1}.png" if number % 2 else f"elsewhere/{number}"
                    other.execute("update public.avatars set path = %s where id = %s", (key, number))
                    written[str(number)] = key

    with ThreadPoolExecutor(1) as pool:
        disturbing = pool.submit(disturb)
        while not disturbing.done() or any_migration.enqueue(10)[0].entries:
            any_migration.make_due()
            any_migration.work()
        disturbing.result()
    rows = any_migration.rows()
    for row_id, key in written.items():
        expected = key.replace("image/", "avatar/") if key and key.startswith("image/") else key
        assert rows.get(row_id) == expected
        any_migration.bodies[row_id] = b"new"
        if expected and expected.startswith("elsewhere/"):
            del any_migration.bodies[row_id]
    any_migration.audit()


STRICT = """
    do $$ begin
        execute format('alter database %I set default_transaction_isolation to %L', current_database(), 'serializable');
    end $$
"""


def test_a_database_with_stricter_transactions_by_default_is_no_hindrance(migration: Migration) -> None:
    migration.execute(STRICT)
    migration.fill(5)
    migration.enqueue()
    with work_while_locked(migration, "update public.avatars set path = 'elsewhere/3' where id = 3") as other:
        other.commit()
    assert migration.counts() == {"migrated": 4, "changed": 1}
