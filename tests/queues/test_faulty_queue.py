"""A faulty package of queues is told in one sentence with its name, and stops nothing else."""

import json
from pathlib import Path

import pytest

from rowferry.errors import UsageError
from rowferry.queues import list_queues
from rowferry_worker.queues import find_queue, list_usable
from support.entries.entry_table import TO, EntryTable
from support.processes.cli import Run, well
from support.queue.plug_in import NOTES, PlugIn, write_plan
from support.queue.workers_here import run_here_in

SPEC = """
from notes_queues import make
import dataclasses
def work(name, perform):
    return dataclasses.replace(make(name), perform=perform)
NUMBER = 7
OTHER = make("another_name")
NO_MODULE = work("no_module", "not_there:perform")
NO_FUNCTION = work("no_function", "notes_work:not_there")
NO_COLON = work("no_colon", "notes_work")
NOT_CALLABLE = work("not_callable", "faulty_specs:NUMBER")
FAULTY_WORK = work("faulty_work", "faulty_work:perform")
ENDING_WORK = work("ending_work", "ending_module:perform")
"""
MODULES = {
    "faulty_specs": SPEC,
    "faulty_import": "import a_package_that_is_not_there",
    "faulty_syntax": "def",
    "faulty_work": "raise RuntimeError('no licence\\nfound')",
    "ending_module": "import sys; sys.exit(0)",
}
FAULTS = {
    "no_package": ("not_there:SPEC", "ModuleNotFoundError"),
    "no_name": ("faulty_specs:NOT_THERE", "AttributeError"),
    "import_error": ("faulty_import:SPEC", "a_package_that_is_not_there"),
    "syntax_error": ("faulty_syntax:SPEC", "SyntaxError"),
    "import_ends": ("ending_module:SPEC", "SystemExit"),
    "wrong_type": ("faulty_specs:NUMBER", "is not a QueueSpec"),
    "wrong_name": ("faulty_specs:OTHER", "is not a QueueSpec named wrong_name"),
    "no_module": ("faulty_specs:NO_MODULE", "not_there"),
    "no_function": ("faulty_specs:NO_FUNCTION", "not_there"),
    "no_colon": ("faulty_specs:NO_COLON", "notes_work"),
    "not_callable": ("faulty_specs:NOT_CALLABLE", "no function"),
    "faulty_work": ("faulty_specs:FAULTY_WORK", "no licence"),
    "ending_work": ("faulty_specs:ENDING_WORK", "SystemExit"),
}


@pytest.fixture
def run_rowferry(tmp_path: Path) -> Run:
    """Run commands in this process, with the workers that they start."""
    return run_here_in(tmp_path)


@pytest.fixture
def faulty(plug_in: PlugIn) -> PlugIn:
    """A package with every fault, beside one that is sound."""
    for name, text in MODULES.items():
        (plug_in.folder / f"{name}.py").write_text(text)
    plug_in.install("faults", {name: value for name, (value, _) in FAULTS.items()})
    return plug_in


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_sentence_that_names_it(name: str, faulty: PlugIn) -> None:
    with pytest.raises(UsageError) as told:
        find_queue(name)
    words = str(told.value)
    assert FAULTS[name][1] in words
    assert name in words
    assert words.endswith(".")
    assert "\n" not in words


def test_the_queues_beside_it_are_as_they_were(faulty: PlugIn) -> None:
    usable = list_usable()
    assert set(list_queues()) - set(usable) == set(FAULTS)
    assert {"note", "echo", "migrate", "verify"} <= set(usable)


def test_a_worker_serves_all_others_and_leaves_the_batches_of_a_faulty_one(
    table: EntryTable, faulty: PlugIn, run_rowferry: Run, tmp_path: Path
) -> None:
    table.execute(NOTES)
    table.insert({str(number): f"{TO}{number}" for number in range(5)})
    write_plan(table, tmp_path, {"note": {}})
    assert run_rowferry("run", "note", "--processes", "0", "--yes").returncode == 0
    table.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count) "
        "select migration_id, 'wrong_type', payload, entry_count from rowferry.batch_queue"
    )
    done = well(run_rowferry("worker", "--until-empty", "--processes", "1", "--log-format", "json"))
    assert {batch["queue_name"]: batch["status"] for batch in table.batches()} == {"note": "DONE", "wrong_type": "INIT"}
    assert not [attempt for attempt in table.attempts() if attempt["verdict"] != "DONE"]
    lines = [json.loads(line) for line in (done.stdout + done.stderr).splitlines() if line.startswith("{")]
    assert sorted(line["queue"] for line in lines if line["message"] == "queue left out") == sorted(FAULTS)


def test_it_is_listed_with_its_fault(table: EntryTable, faulty: PlugIn, run_rowferry: Run) -> None:
    """Of a specification that is sound, no command but `worker` imports the work."""
    done = well(run_rowferry("queues"))
    for name in ("no_package", "import_error", "import_ends", "wrong_type", "wrong_name"):
        (line,) = [line for line in done.stdout.splitlines() if line.split()[:1] == [name]]
        assert FAULTS[name][1] in line


@pytest.mark.by_day("import_error")
@pytest.mark.parametrize("name", ["import_error", "wrong_type"])
def test_a_plan_that_names_it_is_refused_and_any_other_is_not(
    name: str, table: EntryTable, faulty: PlugIn, run_rowferry: Run, tmp_path: Path
) -> None:
    table.execute(NOTES)
    table.insert({"1": f"{TO}1"})
    write_plan(table, tmp_path, {"note": {"then": [name]}})
    for command in (("run", "note", "--yes"), ("run", name, "--yes"), ("worker", "--queue", name)):
        done = run_rowferry(*command)
        assert done.returncode == 2
        *logged, told = done.stderr.splitlines()
        assert all(line.startswith("{") for line in logged), done.stderr
        assert told.startswith("rowferry: ")
        assert FAULTS[name][1] in told
    assert table.batches() == []
    write_plan(table, tmp_path, {"note": {}})
    assert run_rowferry("run", "note", "--processes", "0", "--yes").returncode == 0
    assert table.statuses() == {"INIT"}
