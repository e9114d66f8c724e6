"""Pruning forgets what was finished long ago, in small steps, and nothing else."""

from datetime import timedelta

import pytest

from rowferry.db.connection import call, connect
from support.entries.migration import Migration


@pytest.fixture
def aged(versitygw_migration: Migration) -> Migration:
    """Six batches: four DONE long ago, one DONE now, one in ERROR long ago."""
    migration = versitygw_migration
    migration.fill(6)
    migration.enqueue(batch_size=1)
    migration.work()
    migration.execute("update rowferry.batch_queue set finished_at = now() - interval '40 days' where id <= 5")
    migration.execute("update rowferry.batch_queue set status = 'ERROR', failed = 1, migrated = 0 where id = 5")
    return migration


def test_only_batches_done_long_ago_are_forgotten_with_their_attempts(aged: Migration) -> None:
    pruned = aged.run("prune", "--older-than", "30d", "--step", "2", "--yes")
    assert (pruned.returncode, pruned.stdout) == (0, "Pruned 4 batches.\n")
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


@pytest.mark.parametrize("age", ["soon", "-3d", "5"])
def test_an_age_without_a_unit_is_refused(aged: Migration, age: str) -> None:
    refused = aged.run("prune", f"--older-than={age}", "--yes")
    assert refused.returncode == 2
    assert "Invalid duration" in refused.stderr
    assert len(aged.batches()) == 6


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
