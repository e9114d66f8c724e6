"""A batch that waits for S3 shows PostgreSQL that it lives: its transaction is not taken for a forgotten one."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.processes.worker_process import WorkerProcess
from support.s3.request_log import RequestLog, writes_of

VERDICTS = "select coalesce(verdict, 'open') as verdict from rowferry.batch_attempt where batch_id > 1"
AGED = """
select from pg_stat_activity
where application_name ~ '^rowferry worker' and datname = current_database() and now() - xact_start > interval '8 s'
"""
ARGUMENTS = ("--idle-timeout=6", "--time-budget=0.5")


@contextmanager
def warm_worker(migration: Migration, *arguments: str) -> Iterator[WorkerProcess]:
    """Yield a worker that has done a batch of one entry: only the first has to wait until clients are made."""
    migration.given(1)
    with migration.workers(1, *ARGUMENTS, *arguments) as (worker,):
        migration.wait_until_done()
        yield worker
        migration.wait_until_done()
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0


def test_a_batch_outlives_the_idle_timeout_while_its_objects_are_on_their_way(
    migration: Migration, log: RequestLog
) -> None:
    with warm_worker(migration), ExitStack() as until:
        held = until.enter_context(log.holding(writes_of(range(2, 5))))
        migration.given(3, 3, start=2)
        wait_for(lambda: len(held) > 0)
        wait_for(lambda: migration.execute(AGED) or len(migration.execute(VERDICTS)) > 1)
    assert [row["verdict"] for row in migration.execute(VERDICTS)] == ["DONE"]
    migration.audit()


def test_a_batch_outlives_it_while_the_plan_holds_its_rows_back(migration: Migration) -> None:
    migration.plan["database"] = {"max_rows_per_second": 4}  # 11 s for both batches
    # All copies start at once: else a slot whose turn does not come within the time budget gives its batch back.
    with warm_worker(migration, "--max-batches=2", "--min-parallel=44"):
        migration.given(44, 22, start=2)
    assert [row["verdict"] for row in migration.execute(VERDICTS)] == ["DONE", "DONE"]
    migration.audit()


END = """
select pg_terminate_backend(pid) from pg_stat_activity
where
    application_name ~ '^rowferry worker' and datname = current_database()
    and state = 'idle in transaction'
"""
END_IDLE = f"{END} and now() - state_change > interval '3 s'"


def test_a_script_that_ends_idle_sessions_costs_healthy_rows_nothing(migration: Migration, log: RequestLog) -> None:
    """Nothing is held against the batch; and no transaction is idle for as long as most scripts allow."""
    migration.given(3, 3)
    with migration.workers(1, "--time-budget=60") as (worker,):
        with log.holding(writes_of(range(1, 4))) as held:
            wait_for(lambda: held)
            wait_for(lambda: any(row["pg_terminate_backend"] for row in migration.execute(END)))
            wait_for(lambda: not migration.execute(END_IDLE) and bool(migration.execute(AGED)))
        migration.wait_until_done()
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    verdicts = [row["verdict"] for row in migration.execute(VERDICTS.replace("> 1", "> 0"))]
    assert verdicts[-1] == "DONE"
    assert set(verdicts[:-1]) == {"RELEASED"}
    assert [batch["crashes"] for batch in migration.batches()] == [0]
    migration.audit()
