"""A claimed batch does not disturb the application: lost batches stop at once, and no lock blocks DDL."""

import signal

import psycopg
import pytest

from support.entries.migration import Migration
from support.processes.worker_process import WorkerProcess, eventually
from support.s3.request_log import LoggedRequest, RequestLog

END_SLOTS = "select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name ~ '^rowferry worker'"
KEY = "avatar/u1/me.png"
AT_THE_UPDATE = "select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"


def lose_the_batch(migration: Migration, worker: WorkerProcess) -> None:
    """End the session of the only slot and wait until it knows; it must not take until it next has something to say."""
    migration.execute("update rowferry.migration set paused_at = now()")
    migration.execute(END_SLOTS)
    eventually(lambda: "batch released" in worker.messages())


@pytest.mark.must("a lost connection")
def test_a_worker_that_has_lost_its_batch_writes_over_nothing(migration: Migration, log: RequestLog) -> None:
    """It was told that nothing stands there, late; meanwhile the application has stored a new object."""
    migration.given(1)
    with migration.workers(1, "--max-batches=1") as (worker,):
        with log.holding(lambda seen: seen.method == "HEAD" and seen.key == KEY, where="answer") as held:
            eventually(lambda: held)
            migration.production.put(KEY, b"the application's newer one")
            lose_the_batch(migration, worker)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert migration.production.read(KEY) == b"the application's newer one"


def test_the_upload_of_a_lost_batch_is_never_completed_by_its_worker(migration: Migration, log: RequestLog) -> None:
    migration.plan["migration"]["multipart_threshold_bytes"] = 5 * 1024 * 1024
    migration.add(1, "u1/me.png", bytes(11 * 1024 * 1024))
    migration.enqueue()

    def is_part(seen: LoggedRequest) -> bool:
        return seen.method == "PUT" and "partNumber=2" in seen.query

    with migration.workers(1, "--max-batches=1") as (worker,):
        with log.holding(is_part, where="answer") as held:
            eventually(lambda: held)
            lose_the_batch(migration, worker)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    posts = [seen for seen in log.seen if seen.method == "POST" and "uploadId" in seen.query]
    assert posts == []
    assert migration.production.read(KEY) is None
    assert migration.production.open_uploads() == [KEY]  # the next attempt goes on with it


def test_a_column_can_be_added_while_s3_works(migration: Migration, log: RequestLog) -> None:
    migration.given(4, 1)
    failed = 0
    with migration.workers(2, "--until-empty", "--max-batches=1") as workers:
        with log.holding(lambda seen: seen.writes_object) as held:
            eventually(lambda: len(held) == 2)
            with psycopg.connect(migration.dsn, autocommit=True) as application:
                application.execute("set lock_timeout = '2s'")
                for number in range(6):
                    try:
                        application.execute(f"alter table public.avatars add column c{number} int".encode())
                    except psycopg.errors.LockNotAvailable:
                        failed += 1
        assert [worker.wait() for worker in workers] == [0, 0]
    assert failed == 0
    assert migration.counts() == {"migrated": 4}
    migration.audit()


def test_a_worker_that_is_told_to_stop_during_a_slow_update_leaves_no_crash(versitygw_migration: Migration) -> None:
    migration = versitygw_migration.fill(2)
    migration.add_trigger("perform pg_sleep(600); return new;")
    migration.enqueue(batch_size=2)
    with migration.workers(1, "--max-batches=1", "--grace=0.5") as (worker,):
        eventually(lambda: migration.execute(AT_THE_UPDATE))
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert migration.verdicts() == ["RELEASED"]
    migration.audit(legacy_left=[1, 2])
