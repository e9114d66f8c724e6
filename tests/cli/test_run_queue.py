"""`rowferry run`: one pass of any queue, and of all that it leads to; `rowferry queues` names them."""

import json
from pathlib import Path

import pytest

from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.processes.cli import Run, refused, well
from support.queue.plug_in import FAULTY, NOTES, PlugIn, notes, write_plan
from support.queue.workers_here import run_here

WORKERS_HERE = True


def run_to_end(run_rowferry: Run, *arguments: str) -> str:
    """Run a command that must end well, and return what it prints."""
    return well(run_rowferry(*arguments)).stdout


def test_a_run_ends_when_all_that_its_queue_leads_to_is_done(noted: EntryTable, run_rowferry: Run) -> None:
    done = run_rowferry("run", "note", "-b", "10", "--processes", "1", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert notes(noted) == {"note": 30, "echo": 30}
    assert {(batch["queue_name"], batch["status"]) for batch in noted.batches()} == {("note", "DONE"), ("echo", "DONE")}
    lines = done.stdout.splitlines()
    assert "public.avatars.path: 30 entries in 3 batches to enqueue" in lines
    for name in ("note", "echo"):
        assert any(line.startswith(f"{name}: Progress 100%") and "noted 30" in line for line in lines), done.stdout
        assert lines[lines.index(f"{name}:") + 1].split() == ["migrated", "30", "noted"]


def test_a_run_leaves_what_fails_and_hands_on_the_rest(noted: EntryTable, run_rowferry: Run, tmp_path: Path) -> None:
    noted.execute("alter table public.avatars add column note text")
    noted.execute("update public.avatars set note = 'bad' where id = 7")
    write_plan(noted, tmp_path, {"note": {"column": "note", "then": ["echo"]}})
    done = run_rowferry("run", "note", "--processes", "1", "--yes")
    assert done.returncode == 1
    assert "1 could not be settled (see `rowferry errors`)" in done.stdout
    assert notes(noted) == {"note": 29, "echo": 29}
    again = run_rowferry("run", "note", "--processes", "1", "--yes")
    assert again.returncode == 1
    assert "1 batch of an earlier pass in the queue note in ERROR: `rowferry errors` says why" in again.stdout
    noted.execute("update public.avatars set note = 'good'")
    assert run_rowferry("requeue", "--all").returncode == 0
    assert run_rowferry("run", "note", "--processes", "1", "--yes").returncode == 0
    assert notes(noted) == {"note": 30, "echo": 30}


def test_a_queue_that_was_paused_is_not_waited_for(noted: EntryTable, run_rowferry: Run) -> None:
    assert run_rowferry("run", "note", "--processes", "0", "--yes").returncode == 0
    noted.execute("update rowferry.queue set paused_at = now() where name = 'echo'")
    done = run_rowferry("run", "note", "--processes", "1", "--yes")
    assert (done.returncode, notes(noted)) == (1, {"note": 30})
    assert "1 batch left waiting in the queue echo, which is paused" in done.stdout


def test_a_run_ends_when_workers_pause_its_migration(noted: EntryTable, run_rowferry: Run) -> None:
    noted.execute(
        "create function public.pause() returns trigger language plpgsql security definer as $$ begin "
        "update rowferry.migration set paused_at = now(), pause_reason = 'No rights.', paused_by_worker = true; "
        "return new; end $$"
    )
    noted.execute("create trigger pause after insert on public.notes for each statement execute function pause()")
    done = run_rowferry("run", "note", "-b", "10", "--processes", "1", "--yes")
    assert (done.returncode, done.stderr) == (1, "")
    last = done.stdout.splitlines()[-1]
    assert last.startswith("Migration avatars is paused since 2")
    assert last.endswith(
        ": No rights. Next: fix that, run `rowferry resume`, then this command again. More: docs/runbook.md"
    )


def test_without_workers_here_a_run_only_enqueues(noted: EntryTable, run_rowferry: Run) -> None:
    done = well(run_rowferry("run", "note", "-b", "10", "--processes", "0", "--yes"))
    assert "Enqueued 30 entries in 3 batches. Next: run `rowferry worker` on any host." in done.stdout
    assert notes(noted) == {}


def test_a_range_of_one_table_is_run(noted: EntryTable, run_rowferry: Run) -> None:
    chosen = ("--table", "public.avatars", "--first", "10", "--last", "19")
    assert run_rowferry("run", "note", *chosen, "--processes", "1", "--yes").returncode == 0
    assert notes(noted) == {"note": 10, "echo": 10}


def test_what_a_queue_writes_to_must_be_there(noted: EntryTable, run_rowferry: Run, tmp_path: Path) -> None:
    """Also that of a queue which the one leads to; test_check_queues has each fault."""
    write_plan(noted, tmp_path, {"note": {"then": ["echo"]}, "echo": {"into": "public.nots"}})
    told = "There is no table public.nots, which the queue echo uses; correct [queue.echo]."
    for command in (("run", "note", "--yes"), ("enqueue", "--queue", "note")):
        done = run_rowferry(*command)
        assert (done.returncode, done.stderr) == (2, f"rowferry: {told}\n")
    assert noted.batches() == []


def test_a_name_that_is_nearly_right_is_told_and_names_are_completed(run_rowferry: Run, plug_in: PlugIn) -> None:
    words = "There is no queue 'nott' here (did you mean note?): correct the name, or install its package.\n"
    assert refused(run_rowferry("run", "nott")) == f"rowferry: {words}"
    for words, count in (("rowferry run no", "2"), ("rowferry worker --queue no", "3")):
        found = run_rowferry(_ROWFERRY_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
        assert found.stdout == "plain,note\n"


@pytest.mark.parametrize("command", ["migrate", "cutover"])
def test_a_migration_follows_its_chain(command: str, migration: Migration, plug_in: PlugIn) -> None:
    migration.execute(NOTES)
    migration.fill(20).write_plan()
    with migration.plan_path.open("a", encoding="utf-8") as plan:
        plan.write('[queue.migrate]\nthen = ["note"]\n')
    done = well(run_here(migration.folder, command, "-b", "5", "--processes", "1", "--yes"))
    assert notes(migration) == {"note": 20}
    assert command == "cutover" or ("noted 20" in done.stdout and "objects copied 20" in done.stdout)
    migration.audit()


@pytest.mark.parametrize("ways", [("revert",), ("run", "revert"), ("enqueue", "--queue", "revert")])
def test_what_revert_refuses_is_refused_whichever_command_asks(migration: Migration, ways: tuple[str, ...]) -> None:
    """A batch that waits to migrate would migrate reverted rows again."""
    migration.fill(4).write_plan().migrate(batch_size=2, limit=2)
    migration.enqueue(batch_size=2)
    said = refused(run_here(migration.folder, *ways, "--yes"))
    assert "1 batch of migration avatars still wait in the queue migrate and would undo what revert does" in said
    assert {batch["queue_name"] for batch in migration.batches()} == {"migrate"}
    migration.work()
    assert (
        run_here(migration.folder, *ways, "--yes", *(("--processes", "1") if ways[0] == "run" else ())).returncode == 0
    )
    assert {batch["queue_name"] for batch in migration.batches()} == {"migrate", "revert"}


def test_rows_that_stay_are_not_reverted_whichever_command_asks(migration: Migration) -> None:
    migration.plan["entries"][0] |= {"rows": "stay"}
    migration.fill(2).write_plan()
    for ways in (("run", "revert"), ("enqueue", "--queue", "revert")):
        done = refused(run_here(migration.folder, *ways, "--yes"))
        assert "No row moves with the objects of public.avatars.path, so there is nothing to revert" in done


def test_queues_are_listed_with_their_packages_and_settings(noted: EntryTable, run_rowferry: Run) -> None:
    run_rowferry("run", "note", "-b", "10", "--processes", "0", "--yes")
    noted.execute("update rowferry.queue set weight = 2.5, max_claimed = 4 where name = 'note'")
    noted.execute("update rowferry.queue set paused_at = '2026-01-01 UTC' where name = 'echo'")
    noted.execute("select rowferry.heartbeat('host:1:a', 'host', 1, '0.1.0', 2, 64, '{migrate}')")
    shown = run_to_end(run_rowferry, "queues")
    lines = {tuple(line.split()[:2]): line.split() for line in shown.splitlines() if line.split()}
    assert "Note each entry, as note does. (notes 1.5)" in shown
    assert lines["avatars", "note"] == ["avatars", "note", "no", "workers", "3", "0", "/", "4", "0", "0", "2.5", "echo"]
    assert (
        "note of avatars: 3 batches wait, and no live worker serves it: start `rowferry worker` on any host." in shown
    )
    assert "echo of avatars is paused since 2026-01-01" in shown

    document = json.loads(run_rowferry("queues", "--json").stdout)
    (note,) = [line for line in document["queues"] if line["queue"] == "note"]
    expected = {
        "migration": "avatars",
        "is_known": True,
        "state": "no_workers",
        "weight": 2.5,
        "max_claimed": 4,
        "paused_at": None,
        "next": ["echo"],
        "batches_left": 3,
        "claimed": 0,
        "workers": 0,
    }
    assert note | expected == note


def test_a_queue_that_nobody_here_knows_is_told(table: EntryTable, run_rowferry: Run) -> None:
    table.add_legacy(range(3)).enqueue()
    table.execute("update rowferry.batch_queue set queue_name = 'elsewhere'")
    shown = run_to_end(run_rowferry, "queues")
    assert (
        "elsewhere of avatars is not known here (0 live workers serve it, 1 batch waits): install its package where "
        "workers shall serve it."
    ) in shown


def test_a_worker_leaves_queues_that_it_does_not_know(table: EntryTable, run_rowferry: Run) -> None:
    table.add_legacy(range(3)).enqueue()
    table.execute("update rowferry.batch_queue set queue_name = 'elsewhere'")
    well(run_rowferry("worker", "--until-empty", "--processes", "2", "--log-format", "text"))
    assert table.statuses() == {"INIT"}


def test_a_faulty_package_is_named_and_stops_nobody(noted: EntryTable, plug_in: PlugIn, run_rowferry: Run) -> None:
    plug_in.install("broken", FAULTY)
    run_rowferry("run", "note", "--processes", "0", "--yes")
    done = well(run_rowferry("worker", "--until-empty", "--processes", "2", "--log-format", "text"))
    assert notes(noted) == {"note": 30, "echo": 30}
    said = done.stdout + done.stderr
    assert said.count("queue left out") == 1, said
    assert "faulty" in next(line for line in said.splitlines() if "queue left out" in line)
    shown = run_to_end(run_rowferry, "queues")
    assert "The queue faulty of notes_missing:FAULTY cannot be loaded (ModuleNotFoundError" in shown
    assert run_rowferry("worker", "--queue", "faulty", "--until-empty").returncode == 2


def test_a_package_cannot_take_the_name_of_another_queue(plug_in: PlugIn, run_rowferry: Run) -> None:
    plug_in.install("thief", {"verify": "notes_queues:NOTE"})
    said = refused(run_rowferry("run", "verify", "--yes"))
    assert "The queue verify is in " in said
    assert "thief 1.5" in said
    assert "uninstall one of them" in said


@pytest.mark.parametrize("command", [["verify"], ["migrate", "--allow-empty"]])
def test_a_run_without_entries_is_no_hundred_per_cent(migration: Migration, command: list[str]) -> None:
    migration.write_plan()
    migration.execute("truncate public.avatars")
    done = well(migration.run_here(*command, "--yes"))
    assert f"No entries: the queue {command[0]} had nothing to do" in done.stdout
    assert "100%" not in done.stdout
