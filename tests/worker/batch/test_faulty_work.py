"""Work of a package that breaks its promises at run time costs its own batches, and neither entries nor workers."""

from pathlib import Path

import pytest
from psycopg.types.json import Jsonb

from support.entries.entry_table import TO, EntryTable
from support.processes.cli import Run
from support.queue.plug_in import NOTES, PlugIn, notes, write_plan

SPECS = """
from dataclasses import replace
from notes_queues import NoteSettings, make


class Raising(NoteSettings, frozen=True, kw_only=True):
    def __post_init__(self):
        raise KeyError("licence")


def fits(settings, plan):
    raise RuntimeError("no licence")


def work(name):
    return replace(make(name), perform=f"faulty_performs:{name}")


DROPS, INVENTS, DOUBLES, EXITS, NOTHING = map(work, ("drops", "invents", "doubles", "exits", "nothing"))
RAISING = replace(make("raising"), settings=Raising)
UNFIT = replace(make("unfit"), fits=fits)
"""
PERFORMS = """
import sys
from rowferry.batch import Entry, EntryResult, Performed
from notes_work import perform


def drops(context, entries):
    return Performed(perform(context, entries).results[1:])


def invents(context, entries):
    results = perform(context, entries).results
    return Performed([*results[1:], EntryResult(Entry("99", "another"), results[0].outcome)])


def doubles(context, entries):
    results = perform(context, entries).results
    return Performed([*results, results[0]])


def exits(context, entries):
    perform(context, entries)
    sys.exit(0)


def nothing(context, entries):
    return None
"""
WORK = {
    "drops": "9 results for 10 entries",
    "invents": "one result for each entry",
    "doubles": "11 results for 10 entries",
    "exits": "SystemExit",
    "nothing": "NoneType",
}


@pytest.fixture
def faulty(table: EntryTable, plug_in: PlugIn) -> EntryTable:
    """Ten entries, and queues that break their promises beside `note`, which keeps them."""
    (plug_in.folder / "faulty_specs.py").write_text(SPECS)
    (plug_in.folder / "faulty_performs.py").write_text(PERFORMS)
    plug_in.install("faults", {name: f"faulty_specs:{name.upper()}" for name in (*WORK, "raising", "unfit")})
    table.execute(NOTES)
    return table.insert({str(number): f"{TO}{number}" for number in range(10)})


@pytest.mark.by_day("exits", "invents")
@pytest.mark.parametrize("name", WORK)
def test_what_breaks_its_promises_is_an_error_of_its_batch(
    name: str, faulty: EntryTable, run_rowferry: Run, tmp_path: Path
) -> None:
    """Nothing of it is written, no entry is counted as done, and the worker goes on with the other queue."""
    write_plan(faulty, tmp_path, {name: {}, "note": {}})
    for queue in (name, "note"):
        assert run_rowferry("run", queue, "--processes", "0", "--yes").returncode == 0
    faulty.execute("update rowferry.batch_queue set max_attempts = 1")
    done = run_rowferry("worker", "--until-empty", "--processes", "1")
    assert done.returncode == 0, done.stderr
    broken, sound = faulty.batches()
    assert (broken["status"], broken["failed"], sound["status"]) == ("ERROR", 10, "DONE")
    assert WORK[name] in broken["error"]
    assert notes(faulty) == {"note": 10}


@pytest.mark.by_day("unfit")
@pytest.mark.parametrize("name", ["raising", "unfit"])
def test_settings_that_fail_in_the_package_are_one_sentence_and_stop_no_other_queue(
    name: str, faulty: EntryTable, run_rowferry: Run, tmp_path: Path
) -> None:
    write_plan(faulty, tmp_path, {name: {}})
    for command in (("run", name, "--yes"), ("check",)):
        done = run_rowferry(*command)
        told = (done.stdout + done.stderr).splitlines()
        assert done.returncode in {1, 2}, told
        assert not [line for line in told if "Traceback" in line]
        assert [line for line in told if f"[queue.{name}]" in line and "licence" in line], told
    write_plan(faulty, tmp_path, {"note": {}})
    assert run_rowferry("run", "note", "--processes", "0", "--yes").returncode == 0
    faulty.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, run_after) "
        "select migration_id, %s, payload, entry_count, now() - interval '1 day' from rowferry.batch_queue",
        (name,),
    )
    done = run_rowferry("worker", "--until-empty", "--processes", "1")
    assert done.returncode == 2, done.stderr
    assert f"Migration avatars cannot be worked on here: In [queue.{name}] of the plan avatars, " in done.stderr
    assert {batch["queue_name"]: batch["status"] for batch in faulty.batches()} == {"note": "DONE", name: "INIT"}
    assert notes(faulty) == {"note": 10}


def test_a_batch_of_a_source_that_its_queue_does_not_take_is_told_so(
    faulty: EntryTable, run_rowferry: Run, tmp_path: Path
) -> None:
    """As an operator's `next` can make them."""
    write_plan(faulty, tmp_path, {"items_alone": {}, "note": {}})
    assert run_rowferry("run", "note", "--processes", "0", "--yes").returncode == 0
    faulty.execute("update rowferry.batch_queue set queue_name = 'items_alone'")
    assert run_rowferry("worker", "--until-empty", "--processes", "1").returncode == 0
    (batch,) = faulty.batches()
    assert batch["status"] == "ERROR"
    assert batch["error"].startswith("The queue items_alone works on items, not on rows of a table")


UNFOLLOWED = {
    "items_alone": (["verify"], "The queue verify cannot follow items_alone, which works on items: leave it out of"),
    "note": (["echo", "echo"], "`then` names echo twice"),
}


@pytest.mark.parametrize("queue", UNFOLLOWED)
def test_a_plan_whose_queues_cannot_follow_one_another_is_refused(
    faulty: EntryTable, run_rowferry: Run, tmp_path: Path, queue: str
) -> None:
    then, words = UNFOLLOWED[queue]
    write_plan(faulty, tmp_path, {queue: {"then": then}})
    done = run_rowferry("run", queue, "--yes")
    assert done.returncode == 2
    assert words in done.stderr


def test_items_of_a_queue_that_no_plan_has_named_are_tracked(
    faulty: EntryTable, run_rowferry: Run, tmp_path: Path
) -> None:
    write_plan(faulty, tmp_path, {"note": {}})
    assert run_rowferry("run", "note", "--processes", "0", "--yes").returncode == 0
    faulty.execute("delete from rowferry.batch_queue")
    faulty.execute("select rowferry.enqueue_items('avatars', 'echo', %s)", (Jsonb([{"id": "a"}]),))
    (batch,) = faulty.batches()
    assert batch["payload"]["unsettled"] is None
