"""Rows that name folders: a row moves when everything in its folder stands in production, and not before."""

import re

import pytest

from support.entries.checks import check, problems
from support.entries.estimating import estimate
from support.entries.migration import Migration
from support.entries.runs import LEGACY, PRODUCTION, Runs
from support.queue.queue_runs import outcomes, revert, verify
from support.s3.request_log import RequestLog


@pytest.fixture
def runs(migration: Migration) -> Runs:
    return Runs(migration)


def test_a_row_moves_with_all_that_is_in_its_folder(any_migration: Migration) -> None:
    runs = Runs(any_migration)
    runs.add("a", ["model/MLmodel", "model/data/weights.bin", "metrics é.json"])
    runs.add("ab", ["x"])
    runs.add("c", ["y", "z"], folder="0/c/artifacts/")
    assert problems(any_migration) == []
    assert any_migration.migrate() == {"migrated": 3}
    assert runs.places()["a"] == f"{PRODUCTION}0/a/artifacts"
    runs.audit()
    assert outcomes(verify(any_migration)) == {"kept": 3}
    assert outcomes(revert(any_migration)) == {"migrated": 3}
    runs.audit(left=["a", "ab", "c"])


def test_a_folder_ends_at_a_slash(runs: Runs) -> None:
    runs.add("a", ["x"], folder="0/ab")
    runs.migration.legacy.put("0/abc/other", b"of no row")
    runs.migration.legacy.put("0/ab.png", b"of no row")
    runs.migration.migrate()
    assert set(runs.migration.production.listing()) == {"mlflow/0/ab/x"}
    runs.audit()


def test_an_empty_folder_is_missing_unless_the_plan_allows_it(runs: Runs) -> None:
    runs.add("a", [])
    runs.add("b", ["x"])
    assert runs.migration.migrate() == {"migrated": 1, "missing": 1}
    assert "the folder '0/a/artifacts/' has no object; write `may_be_empty = true`" in runs.migration.failure_of("a")[2]
    runs.audit(left=["a"])
    runs.migration.plan["entries"][0]["may_be_empty"] = True
    runs.migration.enqueue()
    runs.migration.execute("select rowferry.requeue()")
    assert runs.migration.work() == {"migrated": 1, "kept": 1}
    assert outcomes(verify(runs.migration)) == {"kept": 2}
    assert outcomes(revert(runs.migration)) == {"migrated": 2}
    runs.audit(left=["a", "b"])


def test_one_object_that_cannot_be_copied_keeps_its_row(runs: Runs) -> None:
    runs.add("a", ["x", "y"])
    runs.add("b", ["z"])
    runs.migration.production.put("mlflow/0/a/artifacts/y", b"of another")
    assert runs.migration.migrate() == {"migrated": 1, "conflict": 1}
    assert "'0/a/artifacts/y': a different object" in runs.migration.failure_of("a")[2]
    runs.audit(left=["a"])
    assert runs.migration.run_here("requeue", "--all", "--on-conflict", "overwrite").returncode == 0
    assert runs.migration.work() == {"migrated": 2}
    runs.audit()


def test_folders_within_one_another_share_their_objects(runs: Runs) -> None:
    runs.add("a", ["x", "sub/y"], folder="0/a")
    runs.add("b", [], folder="0/a/sub")
    runs.add("c", [], folder="0/a/")
    runs.bodies["b"] = {"y": runs.bodies["a"]["sub/y"]}
    assert runs.migration.migrate() == {"migrated": 1, "kept": 2}
    runs.audit()


def test_a_check_says_which_folders_are_empty_and_what_no_row_names(runs: Runs) -> None:
    runs.add("a", ["x", "sub/y"], folder="0/a")
    runs.add("b", [], folder="0/b")
    runs.migration.legacy.put("0/a.txt", b"of no row")
    said = "; ".join(finding.what for finding in check(runs.migration))
    assert "1 of 2 sampled folders hold objects, 1 is empty, for example '0/b/'" in said
    assert "and its folder '0/a/' becomes 'mlflow/0/a/'" in said
    assert "no row and no [[objects]] names 1 of 3 objects" in said


def test_an_estimate_counts_the_objects_of_folders(runs: Runs) -> None:
    runs.add("a", ["x", "y", "z"])
    found = estimate(runs.migration)
    assert found["entries"] == 1
    assert found["requests"]["legacy"]["ListObjectsV2"] == 2
    assert found["requests"]["production"]["CopyObject"] == pytest.approx(3, abs=1)


def test_a_bucket_that_may_not_be_listed_holds_nothing_against_the_rows(migration: Migration, log: RequestLog) -> None:
    runs = Runs(migration)
    runs.add("a", ["x"])
    with log.refusing(lambda seen: "list-type" in seen.query, 403, "AccessDenied"):
        migration.migrate()
    assert migration.verdicts() == ["RELEASED"]
    assert "give the legacy credentials s3:ListBucket" in migration.attempts()[0]["error"]
    runs.audit(left=["a"])


def test_folders_that_may_not_be_listed_fail_by_name_and_the_others_move(migration: Migration, log: RequestLog) -> None:
    runs = Runs(migration)
    for name in ("a", "b", "c", "d", "e"):
        runs.add(name, ["x"])
    migration.enqueue(1)
    with log.refusing(lambda seen: re.search("prefix=0%2F[abcd]", seen.query) is not None, 403, "AccessDenied"):
        assert migration.work() == {"migrated": 1, "failed": 4}
    runs.audit(left=["a", "b", "c", "d"])


def test_facts_of_one_object_are_not_those_of_a_folder(runs: Runs) -> None:
    runs.migration.plan["queue"] = {"inspect": {"columns": {"size": "artifact_uri"}}}
    said = problems(runs.migration)
    assert any("name folders, and facts are of one object" in what for what in said)


def test_the_queue_of_parts_leaves_folders_to_migrate(runs: Runs) -> None:
    runs.add("a", ["x"])
    runs.migration.plan["queue"] = {"parts": {"then": ["migrate"]}}
    runs.migration.enqueue(queue="parts")
    runs.migration.work("parts", "migrate")
    assert [batch["queue_name"] for batch in runs.migration.batches()] == ["parts", "migrate"]
    runs.audit()


def test_a_folder_inside_its_own_copy_is_refused(runs: Runs) -> None:
    runs.migration.plan["production"]["bucket"] = runs.migration.plan["legacy"]["bucket"]
    runs.migration.plan["entries"][0]["production_object"] = "0/a/"
    runs.migration.legacy.put("0/a/x", b"body")
    runs.migration.execute("insert into public.runs values ('a', %s)", (f"{LEGACY}0/a",))
    runs.migration.plan["entries"][0]["from"] = f"{LEGACY}0/a"
    runs.migration.plan["entries"][0]["legacy_object"] = "0/a"
    runs.migration.migrate()
    assert "would be objects of its own folder" in runs.migration.failure_of("a")[2]
