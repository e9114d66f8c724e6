"""A batch that waits for S3 shows PostgreSQL that it lives: its transaction is not taken for a forgotten one."""

import time
from contextlib import ExitStack

from migration import Migration
from processes import wait_for
from request_log import RequestLog

LEDGER = "select coalesce(verdict, 'open') as verdict from rowferry.batch_attempt"
ARGUMENTS = ("--until-empty", "--idle-timeout=5", "--time-budget=0.5")


def test_a_batch_outlives_the_idle_timeout_while_its_objects_are_on_their_way(
    logged_migration: Migration, log: RequestLog
) -> None:
    migration = logged_migration
    migration.fill(3)
    migration.enqueue(3)
    with ExitStack() as until:
        held = until.enter_context(log.holding(lambda seen: seen.writes_object))
        with migration.workers(1, *ARGUMENTS) as (worker,):
            wait_for(lambda: len(held) > 0)
            time.sleep(11)  # twice as long as PostgreSQL leaves a silent transaction alone
            until.close()
            assert worker.wait() == 0, worker.log
    assert [row["verdict"] for row in migration.execute(LEDGER)] == ["DONE"]
    migration.audit()


def test_a_batch_outlives_it_while_the_plan_holds_its_rows_back(migration: Migration) -> None:
    migration.plan["database"] = {"max_rows_per_second": 2}
    migration.fill(28)
    migration.enqueue(14)
    # All objects are begun at once: else a slot whose turn does not come within the time budget gives its batch back.
    with migration.workers(1, *ARGUMENTS, "--slots=2", "--parallel-least=28") as (worker,):
        assert worker.wait() == 0, worker.log
    assert {row["verdict"] for row in migration.execute(LEDGER)} == {"DONE"}
    migration.audit()
