"""Rows that others lock, rewrite or delete meanwhile are never overwritten, and never hold up the rest."""

from collections import Counter

import psycopg
import pytest

from rowferry.db.timeouts import LOCK_TIMEOUT
from support.entries.migration import Migration
from support.postgres.lock_holders import uncommitted, work_while_locked
from support.s3.request_log import LoggedRequest, RequestLog


def test_a_locked_row_is_put_back_and_migrated_later(any_migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCK_TIMEOUT, "0.3")
    any_migration.given(10)
    with uncommitted(any_migration, "select from public.avatars where id = 4 for update"):
        any_migration.work()
        assert any_migration.verdicts() == ["RETRY"]
        assert any_migration.counts() == {"migrated": 9, "failed": 1}
        assert any_migration.failure_of(4)[2] == "another session holds a lock on the row"
        any_migration.audit(legacy_left=[4])
    assert any_migration.work_again() == {"migrated": 9, "kept": 1}
    assert any_migration.statuses() == {"DONE"}
    any_migration.audit()


DISTURBANCES = [
    "select %(id)s",
    "delete from public.avatars where id = %(id)s",
    "update public.avatars set path = 'image/new.png' where id = %(id)s",
    "update public.avatars set path = 'elsewhere/new.png' where id = %(id)s",
]


@pytest.mark.must("rows that the application changes")
def test_rows_rewritten_and_deleted_meanwhile_are_never_overwritten(migration: Migration, log: RequestLog) -> None:
    """Another client rewrites and deletes rows all the time, while their objects are on their way."""
    migration.fill(60)
    migration.legacy.put("image/new.png", b"new")
    migration.enqueue(10)

    def disturb(seen: LoggedRequest) -> None:
        number = int(seen.key.removeprefix("avatar/u").partition("/")[0]) if seen.key.startswith("avatar/u") else 0
        if seen.writes_object and number:
            other.execute(DISTURBANCES[number % 4].encode(), {"id": number})

    with psycopg.connect(migration.dsn, autocommit=True) as other:
        with log.telling(disturb):
            assert migration.work() == {"migrated": 15, "changed": 30, "deleted": 15}
        assert migration.enqueue(10)[0].entries == 15
        migration.work()
    assert migration.enqueue(10)[0].entries == 0
    rows = migration.rows()
    assert Counter(rows.values()).most_common(2) == [("avatar/new.png", 15), ("elsewhere/new.png", 15)]
    assert len(rows) == 45
    assert all(key == f"avatar/u{row_id}/me.png" for row_id, key in rows.items() if "new" not in str(key))
    assert migration.production.read("avatar/new.png") == b"new"
    migration.check_balance()


STRICT = """
    do $$ begin
        execute format('alter database %I set default_transaction_isolation to %L', current_database(), 'serializable');
    end $$
"""


def test_a_database_with_stricter_transactions_by_default_is_no_hindrance(migration: Migration) -> None:
    migration.execute(STRICT)
    migration.given(5)
    with work_while_locked(migration, "update public.avatars set path = 'elsewhere/3' where id = 3") as other:
        other.commit()
    assert migration.counts() == {"migrated": 4, "changed": 1}
