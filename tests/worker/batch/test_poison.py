"""An entry that kills its worker ends up alone, and everything around it is migrated."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rowferry.batch import Attempt, Batch
from rowferry_worker.batch.crash_policy import CrashPolicy, choose_parallel, choose_policy
from support.entries.migration import Migration
from support.processes.poison import work_in_spite_of_poison
from support.processes.processes import wait_for
from support.s3.request_log import RequestLog

RUN, SLOWLY, BISECT, FAIL = CrashPolicy.RUN, CrashPolicy.RUN_SLOWLY, CrashPolicy.BISECT, CrashPolicy.FAIL


@pytest.mark.parametrize(
    ("inherited", "crashes", "number", "entries", "policy"),
    [
        (0, 0, 1, 100, RUN),
        (0, 0, 5, 100, RUN),
        (0, 1, 2, 100, SLOWLY),  # it may have been the host's
        (0, 2, 3, 100, BISECT),
        (2, 0, 1, 100, SLOWLY),
        (2, 1, 2, 100, BISECT),
        (5, 1, 2, 2, BISECT),
        (0, 4, 5, 1, SLOWLY),
        (0, 5, 6, 1, FAIL),
        (4, 0, 1, 1, SLOWLY),
        (4, 1, 2, 1, FAIL),
        (9, 0, 1, 1, SLOWLY),  # the innocent half has its turn
    ],
)
def test_a_batch_is_treated_by_its_crashes_and_those_of_its_ancestors(
    inherited: int, crashes: int, number: int, entries: int, policy: CrashPolicy
) -> None:
    batch = Batch(1, 1, 1, "migrate", {}, entries, 5, 0, inherited)
    assert choose_policy(batch, Attempt(1, number, crashes)) is policy


def test_a_killed_worker_leaves_many_batches_with_a_strike_so_the_first_slows_them_least() -> None:
    """The batch of a killed worker is one of 16; the half of a batch that killed two has few objects in flight."""
    batch, half = (Batch(1, 1, 1, "migrate", {}, 500, 5, 0, inherited) for inherited in (0, 2))
    assert choose_parallel(batch, Attempt(1, 2, 1)) == 64
    assert choose_parallel(half, Attempt(1, 1, 0)) == 4
    assert choose_parallel(half, Attempt(1, 2, 1)) == 4


@pytest.mark.parametrize(("inherited", "in_flight"), [(1, 64), (2, 4)])
def test_a_suspected_batch_begins_with_so_many_objects_in_flight(
    migration: Migration, log: RequestLog, inherited: int, in_flight: int
) -> None:
    """As any other after its first strike; a worker's limit begins with 64, and rises with responses."""
    migration.given(80, 80)
    migration.execute("update rowferry.batch_queue set crashes = %s", (inherited,))
    with ThreadPoolExecutor(1) as pool:
        with log.holding(lambda seen: seen.writes_object) as held:
            working = pool.submit(migration.work, parallel=256)
            wait_for(lambda: len(held) == in_flight)
        working.result()
    migration.audit()


@pytest.mark.must("a poisonous entry")
def test_a_poisonous_entry_ends_up_alone_in_error_and_the_others_are_migrated(
    migration: Migration, tmp_path: Path
) -> None:
    migration.given(20, 20)
    statuses = work_in_spite_of_poison(migration, tmp_path)
    assert statuses[0] == -9
    (error,) = [batch for batch in migration.batches() if batch["status"] == "ERROR"]
    assert error["payload"]["first"] == error["payload"]["last"] == "7"
    assert "the worker died" in error["error"]
    counts = migration.counts()
    assert counts.pop("failed") == 1
    assert counts.keys() <= {"migrated", "kept"}, "kept: copied by a worker that then died"
    assert sum(counts.values()) == 19
    migration.audit(legacy_left=[7])


@pytest.mark.soak
def test_a_poisonous_entry_whose_neighbours_are_gone_is_not_tried_for_ever(
    versitygw_migration: Migration, tmp_path: Path
) -> None:
    """The batch was made for several entries, and is never halved any more: it is alone already."""
    migration = versitygw_migration
    migration.given(7, 7)
    migration.execute("delete from public.avatars where id < 7")
    deaths = work_in_spite_of_poison(migration, tmp_path).count(-9)
    assert deaths <= migration.batch()["max_attempts"], "a poison loop"
    assert migration.batch()["status"] == "ERROR"
    assert "the worker died" in migration.batch()["error"]


def test_a_requeued_poisonous_batch_starts_with_a_clean_record(versitygw_migration: Migration) -> None:
    migration = versitygw_migration
    migration.given(2, 2)
    migration.execute("update rowferry.batch_queue set status = 'ERROR', crashes = 9")
    migration.execute("update rowferry.batch_queue set status = 'INIT' where status = 'ERROR'")
    assert migration.batch()["crashes"] == 0
    migration.work()
    migration.audit()
