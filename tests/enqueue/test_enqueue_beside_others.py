"""While an enqueue takes its time, its migration can be paused and its plan changed; no batch outlives its plan."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import errors

from rowferry.db.connection import connect
from rowferry.db.timeouts import LOCK_TIMEOUT
from rowferry.errors import UsageError
from rowferry_cli.status.pause import pause, resume
from rowferry_enqueue.enqueue import Enqueued
from support.entries.entry_table import EntryTable
from support.postgres.said_stable import allow_functions
from support.processes.processes import wait_for
from support.queue.waiting_ranges import finish

OTHER_BUCKET = """update rowferry.migration set plan = jsonb_set(plan, '{production,bucket}', '"elsewhere"')"""
WAITS = "select from pg_stat_activity where application_name = 'rowferry enqueue' and wait_event_type = 'Lock'"


@contextmanager
def slow_enqueue(table: EntryTable) -> Iterator[Future[list[Enqueued]]]:
    """Yield an enqueue that has stored its plan, and waits for a lock on the queue until the block ends."""
    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(table.dsn) as holder:
            holder.execute("lock table rowferry.batch_queue in share mode")
            running = pool.submit(table.enqueue)
            wait_for(lambda: running.done() or table.execute(WAITS))
            assert not running.done()
            yield running
        running.exception(100)


@pytest.fixture
def enqueued(table: EntryTable, monkeypatch: pytest.MonkeyPatch) -> EntryTable:
    """A table whose first pass is done, and with an entry for the next one."""
    monkeypatch.setenv(LOCK_TIMEOUT, "0.1")
    table.add_legacy([1]).enqueue()
    finish(table, table.batch(), "DONE")
    return table.add_legacy([2])


def test_a_migration_is_paused_and_resumed_while_an_enqueue_runs(enqueued: EntryTable) -> None:
    with slow_enqueue(enqueued) as running, connect("test", autocommit=True) as connection:
        assert [each["changed"] for each in pause(connection, "avatars")] == [True]
        assert [each["changed"] for each in resume(connection, "avatars")] == [True]
        enqueued.execute("update rowferry.migration set paused_at = now() where name = 'avatars'")
    assert running.result()[0].entries == 1
    assert enqueued.execute("select from rowferry.migration where paused_at is not null")


def test_a_new_migration_is_paused_while_its_first_enqueue_runs(
    table: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOCK_TIMEOUT, "0.1")
    table.add_legacy([1])
    with slow_enqueue(table) as running, connect("test", autocommit=True) as connection:
        assert [each["changed"] for each in pause(connection, "avatars")] == [True]
    assert running.result()[0].entries == 1


def test_a_plan_that_changes_during_an_enqueue_gets_no_batches_of_the_old_one(enqueued: EntryTable) -> None:
    with slow_enqueue(enqueued) as running:
        enqueued.execute(OTHER_BUCKET)
    with pytest.raises(UsageError, match="was changed meanwhile: run `rowferry enqueue` again"):
        running.result()
    assert len(enqueued.batches()) == 1


def test_a_plan_changed_by_sql_is_refused_while_batches_of_the_old_one_wait_and_then_gets_a_new_revision(
    enqueued: EntryTable,
) -> None:
    enqueued.enqueue()
    for status in ("ERROR", "INIT"):
        finish(enqueued, enqueued.batches()[1], status)
        before = enqueued.execute("select * from rowferry.migration")
        with pytest.raises(errors.InvalidParameterValue, match='"avatars" has 1 batches waiting or in ERROR'):
            enqueued.execute(OTHER_BUCKET)
        assert enqueued.execute("select * from rowferry.migration") == before
    enqueued.execute("""update rowferry.migration set plan = jsonb_set(plan, '{legacy,profile}', '"another"')""")
    finish(enqueued, enqueued.batches()[1], "DONE")
    enqueued.execute(OTHER_BUCKET)
    enqueued.execute("update rowferry.migration set plan = plan, paused_at = now()")
    assert enqueued.execute("select revision from rowferry.migration") == [{"revision": 3}]


def test_an_enqueue_takes_longer_than_statements_of_its_role_may(
    enqueued: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that sleeps longer than the role's statement_timeout stands for a long scan."""
    allow_functions(enqueued, monkeypatch)
    enqueued.plan["entries"][0]["where"] = "public.nap(0.5) is not null"
    monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=300ms")
    assert enqueued.preview()[0].entries == 1
    assert enqueued.enqueue()[0].entries == 1
