"""A table that is not what it was is no fault of its entries: batches are released, and the migration is paused."""

import pytest
from psycopg import sql

from support.entries.migration import Migration
from support.postgres.roles import grant, log_in, new_role
from support.processes.processes import wait_for
from support.queue.paused_migration import check_nothing_burnt, state_of, work_until_paused

ALTER = "alter table public.avatars alter column"
CHANGES = {
    "renamed table": ("alter table public.avatars rename to pictures", "There is no table public.avatars"),
    "renamed key": ("alter table public.avatars rename column path to file", "has no column path"),
    "renamed id": ("alter table public.avatars rename column id to number", "has no column id"),
    "another id": (f"{ALTER} id type uuid using gen_random_uuid()", "are no longer of type uuid"),
    "key of numbers": ("alter table public.avatars alter column path type integer using 1", "is integer, not text"),
    "key of JSON": (f"{ALTER} path type jsonb using to_jsonb(path)", "is jsonb, not text"),
}


@pytest.fixture
def many(migration: Migration) -> Migration:
    """Forty entries in ten batches."""
    return migration.given(40, 4)


@pytest.mark.by_day(
    "before the first batch-renamed id",
    "after a batch-renamed table",
    "before the first batch-key of JSON",
    "after a batch-another id",
)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["before the first batch", "after a batch"])
def test_a_changed_table_pauses_the_migration_and_burns_nothing(change: str, when: str, many: Migration) -> None:
    statement, words = CHANGES[change]
    with many.at_work() as take_turn:
        if when == "after a batch":
            take_turn()
        many.execute(statement)
        wait_for(lambda: take_turn() is None or state_of(many)[0])
    is_paused, reason = state_of(many)
    assert is_paused
    assert words in reason
    assert many.failures() == []
    assert many.verdicts().count("DONE") == (when == "after a batch")
    assert set(many.verdicts()) <= {"RELEASED", "DONE"}


def test_a_role_that_may_not_update_pauses_the_migration_before_anything_is_copied(
    many: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_role(many.dsn) as role:
        grant(many, {"worker": role})
        many.execute(sql.SQL("revoke update on public.avatars from {}").format(sql.Identifier(role)))
        many.execute(sql.SQL("revoke update (path) on public.avatars from {}").format(sql.Identifier(role)))
        with monkeypatch.context() as patch:
            patch.setenv("DATABASE_URL", log_in(many, role))
            work_until_paused(many)
    is_paused, reason = state_of(many)
    assert is_paused
    assert reason.startswith("The role of the workers may not update public.avatars.path; grant it that")
    check_nothing_burnt(many)
    assert many.production.listing() == {}


def test_a_row_that_the_role_may_not_update_is_refused_alone(many: Migration) -> None:
    """Row-level security has the same SQLSTATE as a missing right to the table."""
    many.add_trigger("if new.id = 7 then raise insufficient_privilege; end if; return new;")
    many.work()
    assert state_of(many) == (False, "")
    assert many.counts() == {"migrated": 39, "failed": 1}


def test_a_row_that_cannot_be_read_fails_its_batch_and_not_the_migration(migration: Migration) -> None:
    """Reading it fails as an id of another type does, and the ids are what they were."""
    migration.execute("create table public.divisor as select 1000 as value")
    migration.plan["entries"][0]["where"] = "(select 1 / (e.id - d.value) from public.divisor as d) <> 2"
    migration.given(40, 4)
    migration.execute("update public.divisor set value = 7")
    migration.work()
    assert state_of(migration) == (False, "")
    assert {batch["error"] for batch in migration.batches() if batch["status"] == "ERROR"} >= {
        "PostgreSQL refused: division by zero."
    }


@pytest.mark.by_day("groups", "wanted", "free")
@pytest.mark.parametrize(
    "name", ["groups", "blocks", "waiting", "size", "ends", "depths", "bounds", "free", "wanted", "inserted"]
)
def test_a_condition_may_read_a_table_of_any_name(migration: Migration, name: str) -> None:
    migration.execute(f"create table public.{name} (thing bigint)")
    migration.execute(f"insert into public.{name} select * from generate_series(1, 6)")
    migration.plan["entries"][0]["where"] = f"exists (select from {name} as o where o.thing = e.id)"
    migration.given(8, 2)
    migration.execute("delete from rowferry.batch_queue where payload ->> 'first' = '3'")
    (beside_waiting,) = migration.enqueue(2)
    assert beside_waiting.entries == 2
    assert migration.work() == {"migrated": 6}, migration.failures()
    migration.audit(legacy_left=(7, 8))
