"""Folders of more objects than one attempt takes: each attempt goes on where the last one came to."""

import time
from datetime import timedelta

import pytest

from rowferry_queues import folders
from rowferry_queues.migrate import folders as settling
from support.entries.migration import Migration
from support.entries.runs import LEGACY, Runs
from support.processes.processes import wait_for
from support.queue.at_work import take_one_turn
from support.queue.queue_runs import outcomes, run_queue, verify
from support.s3.objects import ObjectSide
from support.s3.request_log import RequestLog

FEW = 5
NAMES = [f"{number:02}" for number in range(23)]


@pytest.fixture
def runs(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Two runs, the first of which has more objects than an attempt takes; a server's clock tells seconds."""
    monkeypatch.setattr(folders, "MOST_OBJECTS", FEW)
    runs = Runs(migration)
    runs.add("a", NAMES)
    runs.add("b", ["x"])
    return runs


def take_turns(runs: Runs, number: int) -> None:
    with runs.migration.at_work() as take_turn:
        for _ in range(number):
            assert take_turn()


def reached(runs: Runs) -> list[str]:
    payloads = [batch["payload"] for batch in runs.migration.batches()]
    return [payload["folder"]["key"] for payload in payloads if "folder" in payload]


def test_it_moves_when_the_last_attempt_has_come_to_its_end(runs: Runs, log: RequestLog) -> None:
    runs.migration.plan["migration"]["transfer"] = "stream"  # which counts bytes
    assert runs.migration.migrate() == {"migrated": 2}
    assert runs.migration.statuses() == {"DONE"}
    runs.audit()
    written = [seen.key for seen in log.seen if seen.writes_object and seen.key.startswith("mlflow/0/a/")]
    assert len(written) <= len(NAMES) + 1  # one of all objects is written twice, to learn what the server does
    assert len([each for each in runs.migration.verdicts() if each == "RELEASED"]) >= len(NAMES) // FEW
    total = sum(len(body) for bodies in runs.bodies.values() for body in bodies.values())
    assert sum(batch["bytes"] for batch in runs.migration.batches()) == total


def test_other_rows_do_not_wait_for_it(runs: Runs) -> None:
    runs.migration.enqueue()
    turns = 0
    while runs.places()["b"].startswith(LEGACY):
        take_turns(runs, 1)
        turns += 1
    assert turns < len(NAMES) // FEW
    assert "goes on" in runs.migration.failure_of("a")[2]
    assert reached(runs)[0] == f"0/a/artifacts/{NAMES[turns * FEW - 1]}"
    runs.audit(left=["a"])


def test_what_is_added_where_an_attempt_has_passed_is_copied_too(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is what was rewritten there, and what has gone from the production bucket since."""
    monkeypatch.setattr(settling, "MARGIN", timedelta(0))
    runs.migration.enqueue()
    take_turns(runs, 2)
    wait_for_the_next_second(runs.migration.production)
    for name in ("00", "01x"):
        runs.put("a", name, b"written by the application since")
    runs.migration.production.delete("mlflow/0/a/artifacts/03")
    assert runs.migration.work() == {"migrated": 2}
    runs.audit()


def test_what_was_there_before_is_not_looked_at_again(
    runs: Runs, log: RequestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "MARGIN", timedelta(0))
    wait_for_the_next_second(runs.migration.legacy)
    runs.migration.enqueue()
    take_turns(runs, 2)
    log.seen.clear()
    runs.migration.work()
    early = {f"0/a/artifacts/{name}" for name in NAMES[:FEW]}
    assert not [seen for seen in log.seen if seen.key.removeprefix("mlflow/") in early]
    runs.audit()


def wait_for_the_next_second(side: ObjectSide) -> None:
    """Return when all objects are surely older than what happens now: times come in whole seconds."""
    newest = side.head(max(side.listing()))["LastModified"]
    wait_for(lambda: time.time() > newest.timestamp() + 3)


def test_a_conflict_far_behind_is_named_and_ends_the_attempts(runs: Runs) -> None:
    runs.migration.production.put(f"mlflow/0/a/artifacts/{NAMES[13]}", b"of another")
    assert runs.migration.migrate() == {"conflict": 1, "migrated": 1}
    assert f"'0/a/artifacts/{NAMES[13]}': a different object" in runs.migration.failure_of("a")[2]
    runs.audit(left=["a"])
    assert runs.migration.run_here("requeue", "--all", "--on-conflict", "overwrite").returncode == 0
    assert runs.migration.work() == {"migrated": 2}
    runs.audit()


def test_a_worker_that_is_killed_in_the_middle_of_a_folder_loses_one_attempt(runs: Runs, log: RequestLog) -> None:
    migration = runs.migration
    migration.enqueue()
    take_turns(runs, 2)
    late = f"mlflow/0/a/artifacts/{NAMES[20]}"
    with log.holding(lambda seen: seen.writes and seen.key == late) as held, migration.workers(1) as (worker,):
        wait_for(lambda: held)
        worker.kill()
    runs.audit(left=[run for run, place in runs.places().items() if place.startswith("s3://legacy/")])
    migration.finish_after_kills()
    assert migration.counts() == {"migrated": 2}
    runs.audit()


def test_a_time_budget_that_ends_within_a_folder_keeps_what_is_done(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MOST_OBJECTS", 1000)
    runs.migration.enqueue()
    for _ in range(3):
        take_one_turn(until=time.monotonic())
    assert reached(runs)
    assert runs.places()["a"].startswith(LEGACY)
    runs.migration.work()
    assert sum(runs.migration.counts().values()) == 2
    assert runs.migration.counts().get("failed", 0) == 0
    runs.audit()


def test_it_is_verified_repaired_and_reverted_as_a_whole(runs: Runs) -> None:
    runs.migration.migrate()
    assert outcomes(verify(runs.migration)) == {"kept": 2}
    runs.migration.production.delete(f"mlflow/0/a/artifacts/{NAMES[20]}")
    again = [batch for batch in verify(runs.migration) if batch["migrated"] + batch["missing"] + batch["kept"]]
    assert outcomes(again)["missing"] == 1
    assert f"mlflow/0/a/artifacts/{NAMES[20]}" in runs.migration.failure_of("a")[2]
    repaired = verify(runs.migration, repair="older")
    assert outcomes(repaired).get("missing", 0) == 0
    runs.audit()
    assert outcomes(run_queue(runs.migration, "revert", 100)) == {"migrated": 2}
    runs.audit(left=["a", "b"])


def test_the_objects_of_folders_get_the_tags_of_their_row(runs: Runs) -> None:
    runs.migration.plan["queue"] = {"tag": {"set": {"run": {"column": "run_uuid"}}}}
    runs.migration.migrate()
    found = run_queue(runs.migration, "tag", 100)
    assert outcomes(found) == {"migrated": 1, "kept": 1}  # the other row's was tagged while the first was under way
    for name in NAMES:
        assert runs.migration.production.tags(f"mlflow/0/a/artifacts/{name}") == {"run": "a"}
