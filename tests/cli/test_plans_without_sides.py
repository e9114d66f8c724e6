"""Every command with a plan that moves nothing: it works, or says in one sentence what it needs."""

from pathlib import Path

import pytest

from rowferry_cli import COMMANDS
from support.entries.entry_table import EntryTable
from support.processes.cli import Run, refused
from support.queue.plug_in import write_plan

WORKS: dict[str, tuple[str, ...]] = {
    "plan": (),
    "init": ("--grants", "app"),
    "check": (),
    "enqueue": ("--queue", "note", "--yes"),
    "run": ("note", "--processes", "1", "--yes"),
    "worker": ("--until-empty", "--processes", "1"),
    "status": (),
    "queues": (),
    "errors": (),
    "report": (),
    "pause": (),
    "resume": (),
    "requeue": ("--all",),
    "prune": ("--older-than", "1d", "--yes"),
}
"""Commands that need no side, in the order in which they are called here."""

NEED_SIDES = {
    "estimate": (),
    "migrate": ("--yes",),
    "cutover": ("--yes",),
    "verify": ("--yes",),
    "revert": ("--yes",),
    "clean-uploads": ("--yes",),
}
WORKERS_HERE = True
NO_PLAN = {"watch", "exporter"}
"""Commands that read no side of a plan, and run until they are told to stop."""


def test_every_command_is_looked_at_here() -> None:
    assert {*WORKS, *NEED_SIDES, *NO_PLAN} == set(COMMANDS)


@pytest.fixture(params=["rows", "items"])
def written(request: pytest.FixtureRequest, noted: EntryTable, tmp_path: Path) -> str:
    """Write a plan of rows or of items alone, and return the queue that works on it."""
    if request.param == "rows":
        return "note"
    noted.plan["entries"] = []
    write_plan(noted, tmp_path, {"items_alone": {}})
    return "items_alone"


def test_commands_that_need_no_side_work(written: str, run_rowferry: Run) -> None:
    for name, arguments in WORKS.items():
        chosen = [argument.replace("note", written) for argument in arguments]
        done = run_rowferry(name, *chosen)
        assert "Traceback" not in done.stderr, done.stderr
        assert (name, done.returncode) == (name, 0), done.stdout + done.stderr


def test_status_shows_what_the_plan_has_and_nothing_else(noted: EntryTable, run_rowferry: Run, tmp_path: Path) -> None:
    noted.plan["entries"][0] |= {"to": "image/", "rows": "stay"}
    write_plan(noted, tmp_path, {"note": {}})
    shown = run_rowferry("status").stdout
    assert "entries public.avatars.path" in shown
    assert "pass" not in shown
    noted.plan["entries"] = []
    write_plan(noted, tmp_path, {"items_alone": {}})
    assert "Current data status" not in run_rowferry("status").stdout


def test_commands_that_need_both_sides_say_so(written: str, run_rowferry: Run, subtests: pytest.Subtests) -> None:
    for name, arguments in NEED_SIDES.items():
        with subtests.test(name):
            said = refused(run_rowferry(name, *arguments))
            assert said.startswith("rowferry: The plan avatars has no [legacy], and this needs it: add it")


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (("enqueue", "--yes"), "The queue migrate needs the legacy bucket"),
        (("enqueue", "--queue", "verify", "--yes"), "The queue verify needs the legacy bucket"),
        (("run", "migrate", "--yes"), "The queue migrate needs the legacy bucket"),
        (("run", "revert", "--yes"), "The queue revert needs the legacy bucket"),
    ],
)
def test_queues_that_need_sides_say_so(
    noted: EntryTable, run_rowferry: Run, arguments: tuple[str, ...], missing: str
) -> None:
    assert missing in refused(run_rowferry(*arguments))
    assert noted.batches() == []


def test_a_queue_whose_follower_needs_a_side_says_so(noted: EntryTable, run_rowferry: Run, tmp_path: Path) -> None:
    write_plan(noted, tmp_path, {"note": {"then": ["verify"]}})
    assert "The queue verify needs the legacy bucket" in refused(run_rowferry("run", "note", "--yes"))


def test_one_side_alone_is_explained_and_looked_at(noted: EntryTable, run_rowferry: Run, tmp_path: Path) -> None:
    with (tmp_path / "rowferry.toml").open("a") as plan:
        plan.write('[production]\nbucket = "new"\nendpoint_url = "http://127.0.0.1:9"\n')
    shown = run_rowferry("plan").stdout
    assert "production bucket  s3://new at http://127.0.0.1:9" in shown
    assert "queue note: note each entry, as note does" in shown
    done = run_rowferry("check")
    assert done.returncode == 2
    assert "the production bucket new cannot be" in done.stdout + done.stderr or "production" in done.stderr
    assert "Traceback" not in done.stderr
    done = run_rowferry("migrate", "--yes")
    assert "The plan avatars has no [legacy], and this needs it" in done.stderr
