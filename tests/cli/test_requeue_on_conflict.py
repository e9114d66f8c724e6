"""A conflict is ended by a command: by `requeue --on-conflict`, and by `--on-conflict` of the pass that follows."""

import shlex

import psycopg
import pytest

from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.processes.cli import well

FOREIGN = b"another object"
KEY = "avatar/u2/me.png"
ASKED = ("--yes", "--no-objects", "--processes", "1", "--log-file", "it.log")


@pytest.fixture
def taken(migration: Migration) -> Migration:
    """Three entries; a different object is at the production key of the second, so its batch is in ERROR."""
    migration.fill(3)
    migration.production.put(KEY, FOREIGN)
    migration.write_plan().migrate()
    assert migration.failure_of(2)[:2] == ("conflict", "different object")
    return migration


@pytest.mark.parametrize(
    ("choice", "counts", "object_is"),
    [
        ("overwrite", {"migrated": 3}, b"body of 2"),
        ("keep", {"migrated": 2, "kept": 1}, FOREIGN),
        ("older", {"migrated": 2, "conflict": 1}, FOREIGN),
    ],
)
def test_a_requeue_says_what_becomes_of_a_conflict(
    taken: Migration, choice: str, counts: dict[str, int], object_is: bytes
) -> None:
    done = taken.run_here("requeue", "--all", "--on-conflict", choice)
    assert (done.returncode, done.stdout) == (0, "Requeued 1 batch.\n")
    taken.work()
    assert (taken.counts(), taken.production.read(KEY)) == (counts, object_is)


def test_the_message_and_errors_name_commands_that_end_a_conflict_as_they_are_typed(taken: Migration) -> None:
    assert "`rowferry requeue --on-conflict`" in taken.failure_of(2)[2]
    lines = taken.run_here("errors").stdout.splitlines()
    named = [line.partition("rowferry ")[2] for line in lines if line.startswith(("    where ", "    to "))]
    assert [command.rpartition(" ")[2] for command in named] == ["older", "overwrite"]
    assert taken.run_here(*shlex.split(named[1])).returncode == 0
    assert taken.work() == {"migrated": 3}


@pytest.mark.by_day("migrate")
@pytest.mark.parametrize("command", ["migrate", "enqueue"])
def test_a_choice_of_a_pass_holds_for_what_was_requeued_before(taken: Migration, command: str) -> None:
    taken.run_here("requeue", "--all")
    done = taken.run_here(command, *(ASKED if command == "migrate" else ()), "--on-conflict", "overwrite")
    taken.work()
    assert "--on-conflict overwrite holds for 1 waiting batch, too." in done.stdout, done.stdout + done.stderr
    assert taken.counts() == {"migrated": 3}


def test_migrate_ends_with_where_to_read_what_to_type_and_takes_a_choice_for_what_was_requeued(
    taken: Migration,
) -> None:
    """Requeued without one, it would be the same conflict."""
    done = taken.run_here("migrate", *ASKED)
    assert done.returncode == 1
    assert "1 batch in ERROR: `rowferry errors` says why, and what to type" in done.stdout.splitlines()[-1]
    well(taken.run_here("requeue", "--all"))
    well(taken.run_here("migrate", *ASKED, "--on-conflict", "overwrite"))
    assert taken.counts() == {"migrated": 3}


def test_batches_of_queues_without_the_choice_stay_in_error(table: EntryTable) -> None:
    """`verify` overwrites nothing, so a choice means nothing to its batches."""
    table.add_legacy(range(2)).insert({"9": "avatar/u9/me.png"}).enqueue()
    table.enqueue(queue="verify")
    table.execute("update rowferry.batch_queue set status = 'ERROR'")
    (row,) = table.execute("select rowferry.requeue(p_on_conflict => 'keep') as count")
    left = {batch["queue_name"]: (batch["status"], batch["payload"].get("on_conflict")) for batch in table.batches()}
    assert (row["count"], left) == (1, {"migrate": ("INIT", "keep"), "verify": ("ERROR", None)})


@pytest.mark.parametrize(("column", "refused"), [("moment_at", True), ("switched_at", True), ("created_at", False)])
def test_nothing_is_overwritten_once_the_application_may_be_switched(
    table: EntryTable, column: str, refused: bool
) -> None:
    """What production holds then may be the application's own."""
    table.plan["entries"][0] |= {"from": "", "to": "", "rows": "stay"}
    table.add_legacy(range(2)).enqueue()
    table.execute("update rowferry.batch_queue set status = 'ERROR'")
    table.execute(f"update rowferry.migration set {column} = now()")
    try:
        table.execute("select rowferry.requeue(p_on_conflict => 'overwrite')")
        choice = table.batch()["payload"]["on_conflict"]
    except psycopg.Error as error:
        choice = str(error)
    assert ("may have been switched" in choice, choice == "overwrite") == (refused, not refused)
    table.execute("select rowferry.requeue(p_on_conflict => 'keep')")
