"""An entry that kills its worker ends up alone, and everything around it is migrated."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from rowferry.batch import Attempt, Batch
from rowferry_worker.batch.crash_policy import (
    SLOW_PARALLEL,
    CrashPolicy,
    choose_policy,
    choose_wait,
    count_strikes,
    describe_crashes,
    describe_wait,
)
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


def test_a_suspected_batch_has_few_objects_in_flight(migration: Migration, log: RequestLog) -> None:
    migration.given(80, 80)
    migration.execute("update rowferry.batch_queue set crashes = 1")
    with ThreadPoolExecutor(1) as pool:
        with log.holding(lambda seen: seen.writes_object) as held:
            working = pool.submit(migration.work, parallel=256)
            wait_for(lambda: len(held) == SLOW_PARALLEL)
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


def make(
    *, inherited: int = 0, crashes: int = 0, losses: int = 0, since: float | None = None, unclear: float | None = None
) -> tuple[Batch, Attempt]:
    batch = Batch(1, 1, 1, "migrate", {}, 100, 5, 0, inherited)
    since_loss, unclear_for = (None if each is None else timedelta(seconds=each) for each in (since, unclear))
    return batch, Attempt(1, crashes + losses + 1, crashes, losses, since_loss, unclear_for)


@pytest.mark.parametrize(
    ("inherited", "crashes", "losses", "strikes", "policy"),
    [
        (0, 0, 2, 0, CrashPolicy.RUN),
        (0, 0, 3, 1, CrashPolicy.RUN_SLOWLY),
        (0, 0, 4, 2, CrashPolicy.BISECT),
        (0, 1, 3, 2, CrashPolicy.BISECT),
        (1, 0, 1, 0, CrashPolicy.RUN_SLOWLY),
        (1, 0, 2, 1, CrashPolicy.BISECT),
    ],
)
def test_losses_beyond_the_free_ones_are_strikes(
    inherited: int, crashes: int, losses: int, strikes: int, policy: CrashPolicy
) -> None:
    batch, attempt = make(inherited=inherited, crashes=crashes, losses=losses)
    assert count_strikes(batch, attempt) == strikes
    assert choose_policy(batch, attempt) is policy


@pytest.mark.parametrize(
    ("losses", "since", "unclear", "seconds"),
    [
        (1, 0, None, 0),
        (2, 0, None, 5),
        (2, None, None, 0),
        (3, 4, None, 6),
        (4, 0, None, 20),
        (12, 0, None, 300),
        (2, 60, None, 0),
        (0, None, 7, 7),
        (2, 0, 3, 5),
    ],
)
def test_a_batch_waits_twice_as_long_after_each_loss_up_to_five_minutes(
    losses: int, since: float | None, unclear: float | None, seconds: float
) -> None:
    assert choose_wait(*make(losses=losses, since=since, unclear=unclear)) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("inherited", "crashes", "losses", "words"),
    [
        (2, 1, 0, "the worker died 3 times while it held this batch"),
        (2, 0, 1, "the worker died 2 times while it held this batch"),
        (2, 0, 2, "the connection was lost 2 times while it held this batch"),
        (0, 1, 3, "the worker died 1 times and the connection was lost 3 times while it held this batch"),
        (0, 0, 2, "it was tried 2 times and never came to its end"),
    ],
)
def test_what_has_ended_a_batch_is_counted(inherited: int, crashes: int, losses: int, words: str) -> None:
    assert describe_crashes(*make(inherited=inherited, crashes=crashes, losses=losses)) == words


def test_a_wait_for_a_silent_worker_is_told() -> None:
    assert "previous worker has fallen silent" in describe_wait(make(unclear=1)[1])
