"""Pruning forgets what was finished long ago, in small steps, and nothing else."""

from datetime import timedelta

import pytest

from rowferry.db.connection import call, connect
from rowferry.db.statements import statement
from rowferry_cli.operate import prune
from support.entries.migration import Migration
from support.processes.cli import well


@pytest.fixture
def aged(versitygw_migration: Migration) -> Migration:
    """Six batches: four DONE long ago, one DONE now, one in ERROR long ago."""
    migration = versitygw_migration
    migration.given(6, batch_size=1).work()
    migration.execute("update rowferry.batch_queue set finished_at = now() - interval '40 days' where id <= 5")
    migration.execute("update rowferry.batch_queue set status = 'ERROR', failed = 1, migrated = 0 where id = 5")
    return migration


def test_only_batches_done_long_ago_are_forgotten_with_their_attempts(
    aged: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "BATCHES_PER_STEP", 2)
    assert well(aged.run_here("prune", "--older-than", "30d", "--yes")).stdout == "Pruned 4 batches.\n"
    assert [batch["id"] for batch in aged.batches()] == [5, 6]
    assert {attempt["batch_id"] for attempt in aged.attempts()} == {5, 6}


def test_only_the_batches_of_one_queue_are_forgotten(aged: Migration) -> None:
    aged.execute("update rowferry.batch_queue set queue_name = 'verify' where id in (1, 2)")
    pruned = aged.run("prune", "--older-than", "30d", "--queue", "verify", "--yes")
    assert (pruned.returncode, pruned.stdout) == (0, "Pruned 2 batches.\n")
    assert [batch["id"] for batch in aged.batches()] == [3, 4, 5, 6]


def test_a_step_takes_the_oldest_and_passes_over_what_is_locked(aged: Migration) -> None:
    aged.execute("update rowferry.batch_queue set finished_at = now() - interval '50 days' where id = 3")
    with connect("other") as other, connect("prune", autocommit=True) as connection:
        other.execute("select from rowferry.batch_queue where id = 1 for update")
        assert call(connection, "prune_batches", timedelta(days=30), 1)[0]["prune_batches"] == 1
        assert 3 not in {batch["id"] for batch in aged.batches()}
        assert call(connection, "prune_batches", timedelta(days=30), 10)[0]["prune_batches"] == 2
        other.rollback()
    assert [batch["id"] for batch in aged.batches()] == [1, 5, 6]


def test_what_is_left_of_batches_deleted_by_hand_and_of_workers_is_forgotten(aged: Migration) -> None:
    aged.execute("delete from rowferry.batch_queue where id in (1, 6)")
    aged.execute("update rowferry.batch_attempt set started_at = now() - interval '40 days' where batch_id <= 5")
    aged.execute("update rowferry.worker set last_seen_at = now() - interval '40 days'")
    aged.execute(
        "insert into rowferry.worker (id, host, pid, version, batches, in_flight_limit, queues, last_seen_at) "
        "values ('busy', 'h', 1, '1', 1, 1, '{migrate}', now() - interval '40 days'), "
        "('new', 'h', 2, '1', 1, 1, '{migrate}', now())"
    )
    aged.execute("insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id) values (5, 0, 9, 'busy')")
    assert aged.run("prune", "--older-than", "30d", "--yes").returncode == 0
    assert {attempt["batch_id"] for attempt in aged.attempts()} == {5, 6}, "6 was tried too lately to be forgotten"
    with connect("test") as connection:
        workers = connection.execute("select id from rowferry.worker order by id").fetchall()
    assert [worker["id"] for worker in workers] == ["busy", "new"]


OTHERS = """
insert into rowferry.migration (name, plan, created_at, updated_at)
select name, '{}', now() - interval '40 days', now() - interval '40 days'
from unnest(array['over', 'uploads', 'between-passes', 'switched', 'paused-lately', 'waits', 'is-locked']) as name
"""
OF_OTHERS = (
    "insert into rowferry.pass (migration_id, label, number, began_at) select id, 't.k', 1, now() - interval '40 days' "
    "from rowferry.migration where name in ('between-passes', 'switched')",
    "update rowferry.migration set switched_at = now() - interval '35 days' where name = 'switched'",
    "insert into rowferry.upload (production, key, migration_id, batch_id, attempt_id) "
    "select 'p', 'k', id, 0, 0 from rowferry.migration where name = 'uploads'",
    "insert into rowferry.event (migration_id, kind, text) select id, 'paused', '' from rowferry.migration "
    "where name = 'paused-lately'",
    "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count) "
    "select id, 'migrate', '{}', 1 from rowferry.migration where name = 'waits'",
    "insert into rowferry.queue (migration_id, name) select id, 'tag' from rowferry.migration where name = 'over'",
)


def migration_names(migration: Migration) -> set[str]:
    with connect("test") as connection:
        return {row["name"] for row in connection.execute("select name from rowferry.migration")}


def test_migrations_that_are_over_are_forgotten_when_asked_for_and_no_others(aged: Migration) -> None:
    for change in (OTHERS, "insert into rowferry.migration (name, plan) values ('made-lately', '{}')", *OF_OTHERS):
        aged.execute(change)
    before = migration_names(aged)
    assert aged.run("prune", "--older-than", "30d", "--yes").stdout == "Pruned 4 batches.\n"
    assert migration_names(aged) == before
    with connect("other") as other:
        other.execute("select from rowferry.migration where name = 'is-locked' for key share")
        pruned = aged.run("prune", "--older-than", "30d", "--migrations", "--yes")
        other.rollback()
    assert pruned.stdout == "Pruned 0 batches.\nPruned migration over.\nPruned migration switched.\n"
    assert before - migration_names(aged) == {"over", "switched"}


def test_a_migration_that_was_forgotten_can_be_enqueued_again(versitygw_migration: Migration) -> None:
    migration = versitygw_migration
    migration.given(2).work()
    pruned = migration.run("prune", "--older-than", "0s", "--migrations", "--yes")
    assert pruned.stdout == "Pruned 1 batch.\nPruned migration avatars.\n"
    migration.fill(2, start=3).migrate()
    migration.audit()


def test_a_migration_that_is_being_enqueued_is_not_forgotten(aged: Migration) -> None:
    aged.execute(OTHERS)
    with connect("enqueue") as enqueuing, connect("prune", autocommit=True) as pruning:
        enqueuing.execute(statement("lock_enqueue"), {"name": "over"})
        names = {row["prune_migrations"] for row in call(pruning, "prune_migrations", timedelta(days=30))}
        assert "over" not in names
        assert "waits" in names, "the proof that others go"


def test_the_enqueue_of_a_migration_that_stays_does_not_wait(aged: Migration) -> None:
    for change in (OTHERS, *OF_OTHERS):
        aged.execute(change)
    with connect("prune") as pruning, connect("enqueue") as enqueuing:
        assert call(pruning, "prune_migrations", timedelta(days=30))
        enqueuing.execute("set local lock_timeout = '2s'")
        enqueuing.execute(statement("lock_enqueue"), {"name": "waits"})
