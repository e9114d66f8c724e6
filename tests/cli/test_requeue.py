"""What failed is told by reason, and is put back in the queue by a command or by a plain UPDATE alike."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.processes.cli import refused
from support.queue.failing import fail


def statuses(table: EntryTable) -> list[str]:
    return [batch["status"] for batch in table.batches()]


def test_a_requeued_batch_migrates_what_was_missing(migration: Migration) -> None:
    migration.fill(3).add_row(4, "image/late.png").migrate()
    assert migration.batch()["status"] == "ERROR"
    migration.legacy.put("image/late.png", b"late")
    assert migration.run("requeue", "--all").stdout == "Requeued 1 batch.\n"
    migration.work()
    migration.audit()
    assert migration.counts() == {"migrated": 4}


@pytest.fixture
def three(migration: Migration) -> list[int]:
    """Three batches in ERROR for three reasons."""
    return [
        fail(migration, {f"image/{reason}": reason}, error=f"1 entry: {reason}") for reason in ("A%b", "A_b", "Axb")
    ]


def test_all_are_those_of_the_migration_whose_plan_lies_here(migration: Migration, three: list[int]) -> None:
    migration.write_plan()
    migration.execute("insert into rowferry.migration (name, plan) select 'other', plan from rowferry.migration")
    migration.execute(
        "update rowferry.batch_queue set migration_id = (select max(id) from rowferry.migration) where id = %s",
        (three[0],),
    )
    assert migration.run("requeue", "--all").stdout.startswith("Requeued 2 batches.")
    assert statuses(migration) == ["ERROR", "INIT", "INIT"]


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["--all"], 0),
        (["--error-like", "%"], 0),
        (["--error-like", "A_b"], 0),
        (["--error-like", r"A\_b"], 2),
        (["--error-like", "Axb"], 2),
        (["--error-like", "Axb: more words"], 2),
        (["--error-like", "1 entry: Axb"], 2),
        (["--error-like", "nothing"], 3),
    ],
)
def test_the_command_requeues_what_it_is_told_and_no_other(
    migration: Migration, three: list[int], arguments: list[str], left: int
) -> None:
    done = migration.run("requeue", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert statuses(migration).count("ERROR") == left
    if left == len(three):
        assert done.stdout == "No batch in ERROR matches: see `rowferry errors`.\n"
    else:
        batches = "1 batch" if left == 2 else f"{3 - left} batches"
        assert done.stdout == f"Requeued {batches}.\n"


@pytest.mark.parametrize(
    ("arguments", "left", "words"),
    [
        (["--all", "--migration", "banners"], {"a1"}, "2 batches.\n"),
        (["--all", "--migration", "avatars"], {"b1", "b2"}, "1 batch.\n"),
        (["--error-like", "A", "--migration", "banners"], {"a1", "b1"}, "1 batch.\n"),
        (["--all", "--all-migrations"], set[str](), "3 batches.\n"),
    ],
)
def test_a_requeue_can_be_of_one_migration(
    migration: Migration, arguments: list[str], left: set[str], words: str
) -> None:
    """Of another migration neither the batches nor the numbers are touched or told."""
    for error, name, reason in (("a1", "avatars", "A"), ("b1", "banners", "B"), ("b2", "banners", "A")):
        fail(migration, {"image/1": reason}, migration=name, error=error)
    done = migration.run("requeue", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Requeued {words}"
    assert {batch["error"] for batch in migration.batches() if batch["status"] == "ERROR"} == left


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--all", "--batch", "1"],
        ["--batch", "-1"],
        ["--all", "--error-like", "%"],
        ["--migration", "avatars"],
        ["--batch", "1", "--migration", "avatars"],
    ],
)
def test_one_choice_is_needed_and_no_more(migration: Migration, arguments: list[str]) -> None:
    refused(migration.run("requeue", *arguments))


def test_errors_are_grouped_each_with_its_command_and_batches_requeued_by_their_ids_or_all(
    migration: Migration, three: list[int]
) -> None:
    fail(migration, {"image/8": "A%b", "image/9": "A%b"})
    shown = migration.run("errors").stdout
    assert shown.index("failed: A%b  (3 entries in 2 batches") < shown.index("failed: A_b")
    assert r"rowferry requeue --error-like 'A\%b'" in shown
    migration.run("requeue", "--batch", str(three[1]))
    assert [batch["id"] for batch in migration.batches() if batch["status"] == "INIT"] == [three[1]]
    done = migration.run_here("requeue", "--all", "--yes")
    assert (done.returncode, migration.statuses()) == (0, {"INIT"})


def test_a_batch_that_failed_as_a_whole_is_told_too_and_each_reason_with_what_solves_it(migration: Migration) -> None:
    fail(migration, {}, error="the worker died 5 times")
    migration.execute("update rowferry.batch_queue set failed = 1, migrated = 0")
    shown = migration.run("errors").stdout
    assert "failed: the worker died 5 times  (1 entry in 1 batch" in shown
    fail(migration, {"image/1": "PutObject production: NotImplemented: x-amz-tagging", "image/2": "who knows"})
    (line,) = [line for line in migration.run("errors").stdout.splitlines() if "to solve" in line]
    assert 'that server has no tags: write tags = "none" in [production]' in line


def test_entries_are_told_one_by_one_up_to_the_limit(migration: Migration) -> None:
    fail(migration, {"image/1": "A", "image/2": "A"})
    shown = migration.run("errors", "--entries", "--limit", "1").stdout
    assert "public.avatars.path image/" in shown
    assert "and 1 more: --limit 2 shows all" in shown


def test_errors_are_of_one_migration_unless_all_are_asked_for(migration: Migration) -> None:
    fail(migration, {"image/1": "A"})
    fail(migration, {"image/1": "B"}, migration="banners")
    migration.plan["migration"]["name"] = "banners"
    migration.write_plan()
    of_the_plan = migration.run("errors").stdout
    assert ("failed: A" in of_the_plan, "failed: B" in of_the_plan) == (False, True)
    assert "Retry all: rowferry requeue --all --migration banners " in of_the_plan
    named = migration.run("errors", "--migration", "avatars").stdout
    assert ("failed: A" in named, "failed: B" in named) == (True, False)
    assert "rowferry requeue --migration avatars --error-like A\n" in named
    every = migration.run("errors", "--all-migrations").stdout
    assert ("failed: A" in every, "failed: B" in every) == (True, True)
    assert "Retry all: rowferry requeue --all --all-migrations " in every


def test_errors_are_of_one_queue_where_it_is_named(migration: Migration) -> None:
    fail(migration, {"image/1": "A"})
    other = fail(migration, {"image/2": "A"})
    migration.execute("update rowferry.batch_queue set queue_name = 'verify' where id = %s", [other])
    every = migration.run("errors").stdout
    assert "(1 entry in 1 batch of avatars, queue migrate, last at " in every
    assert "rowferry requeue --queue migrate --error-like A\n" in every
    assert "rowferry requeue --queue verify --error-like A\n" in every
    one = migration.run("errors", "--queue", "verify").stdout
    assert "queue migrate" not in one
    assert "Retry all: rowferry requeue --all --queue verify " in one
    (entry,) = json.loads(migration.run("errors", "--json", "--entries", "--queue", "verify").stdout)
    assert entry["key"] == "image/2"


REASONS = st.text("ab%_\\\n", min_size=1, max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(st.lists(REASONS, min_size=1, max_size=8, unique=True))
def test_the_pattern_of_a_reason_matches_no_other(table: EntryTable, reasons: list[str]) -> None:
    table.execute("delete from rowferry.batch_queue")
    fail(table, {str(number): reason for number, reason in enumerate(reasons)})
    rows = table.execute(
        "select p.reason, array_agg(o.reason) as matched from rowferry.error_reasons as p, rowferry.error_reasons as o "
        "where o.reason like p.pattern group by p.reason"
    )
    assert {row["reason"]: row["matched"] for row in rows} == {reason: [reason] for reason in reasons}


def test_a_requeue_by_update_may_say_when_the_batch_is_due(table: EntryTable) -> None:
    fail(table, {"image/1": "A"})
    table.execute("update rowferry.batch_queue set status = 'INIT', run_after = now() + interval '1 hour'")
    (row,) = table.execute("select run_after > now() + interval '59 minutes' as later from rowferry.batch_queue")
    assert row["later"]


def test_a_parked_batch_is_listed_with_what_to_do(migration: Migration) -> None:
    migration.given(3)
    migration.execute("update rowferry.batch_queue set status = 'ERROR' where status = 'INIT'")
    listed = migration.run("errors").stdout
    assert "parked: set to ERROR by hand; `rowferry requeue` puts it back" in listed
    assert "3 entries in 1 batch" in listed
