"""`rowferry cutover`: passes up to the moment, the person's confirmation, a last pass and a verify; resumable."""

import json
import re
import signal
from typing import Any

import psycopg
import pytest

from support.entries.files import (
    LONG_AGO,
    add_file,
    cut_over,
    make_table,
    now,
    passes,
    read_production,
    replace_file,
    wait_for_next_second,
)
from support.entries.listed_objects import PREFIX, TO, name_objects, put_objects
from support.entries.migration import Migration
from support.processes.cli import Done, refused, well
from support.processes.processes import wait_for
from support.processes.terminal import in_terminal

PLAIN = {"TERM": "dumb", "COLUMNS": "200"}
ONE = ("--yes", "--processes", "1", "--batch-size", "5")


@pytest.fixture
def staying(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> Migration:
    """A table of files whose rows stay, seen from the folder of its plan."""
    monkeypatch.chdir(migration.folder)
    made = make_table(migration, "timestamptz")
    for number in range(1, 6):
        add_file(made, number)
    return made.write_plan()


def documents(done: Done) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_script_learns_the_moment_switches_and_finishes(staying: Migration) -> None:
    done = well(cut_over(staying, "--json"))
    first, second, moment = documents(done)
    assert (first["entries"], first["copied"], first["left"]) == (5, 5, 0)
    assert (second["entries"], second["copied"]) == (0, 0)
    assert moment["moment"] is True
    assert "copied 0 objects" in moment["reason"]
    assert "rowferry cutover --finish" in done.stderr

    # Before it was switched the application has replaced one object; afterwards it writes to production only.
    replace_file(staying, 2, "v2")
    staying.execute("insert into public.files values (6, 'f6', %s)", (now(),))
    staying.production.put("f6", b"v1")
    wait_for_next_second()
    staying.production.put("f3", b"v3")
    staying.execute("update public.files set updated_at = %s where id = 3", (now(),))
    before = staying.legacy.listing()

    done = well(cut_over(staying, "--finish", "--json"))
    *_, end = documents(done)
    assert end == {"finished": True, "verified": 6, "repaired": 0, "left": 0}
    assert read_production(staying, 6) == ["v1", "v2", "v3", "v1", "v1", "v1"]
    assert staying.legacy.listing() == before
    assert "Cutover of avatars is complete: 6 entries verified, every object stands in" in done.stderr

    assert cut_over(staying).returncode == 0, "it is confirmed, so it finishes again"


def test_a_script_learns_what_holds_a_pass_back(staying: Migration) -> None:
    with psycopg.connect(staying.dsn, autocommit=True) as application:
        application.execute("begin")
        application.execute("prepare transaction 'late'")
        done = cut_over(staying, "--json")
        application.execute("rollback prepared 'late'")
    first, *_ = documents(done)
    assert 'the prepared transaction "late"' in first["held_back_by"]


def test_a_row_with_an_old_time_is_found_by_the_verify(staying: Migration) -> None:
    assert cut_over(staying).returncode == 0
    add_file(staying, 6, changed=LONG_AGO)
    done = well(cut_over(staying, "--finish"))
    assert read_production(staying, 6) == ["v1"] * 6
    assert "(1 was copied again by this)" in done.stdout


def test_finish_needs_a_pass_and_rows_that_stay(staying: Migration) -> None:
    assert "has made no pass yet: run `rowferry cutover` before the switch." in refused(cut_over(staying, "--finish"))
    staying.plan["entries"] = [
        {"table": "public.avatars", "id": "id", "key": "path", "from": "image/", "to": "avatar/"}
    ]
    staying.write_plan()
    assert "there is no switch to confirm" in refused(cut_over(staying, "--finish"))


def test_switched_back_begins_anew(staying: Migration) -> None:
    refused(cut_over(staying, "--switched-back"))
    cut_over(staying)
    cut_over(staying, "--finish")
    assert cut_over(staying, "--switched-back").returncode == 0
    assert "Now is the moment to switch the application to" in cut_over(staying).stdout


def test_objects_without_rows_are_switched_as_rows_that_stay(migration: Migration) -> None:
    name_objects(migration)
    put_objects(migration, ["a", "b", "c"])
    migration.write_plan()
    assert "no pass yet" in cut_over(migration, "--finish").stderr
    assert cut_over(migration).returncode == 0
    wait_for_next_second()
    put_objects(migration, ["d"])
    migration.legacy.put(f"{PREFIX}b", b"replaced before the switch")
    wait_for_next_second()
    migration.production.put(f"{TO}c", b"written after the switch")
    assert "is complete: 4 entries verified" in well(cut_over(migration, "--finish")).stdout
    found = [migration.production.read(f"{TO}{name}") for name in "abcd"]
    assert found == [b"body of a", b"replaced before the switch", b"written after the switch", b"body of d"]


def test_rows_that_move_need_no_moment(migration: Migration) -> None:
    migration.fill(20).write_plan()
    done = well(cut_over(migration))
    assert "there is no moment to switch it" in done.stdout
    (log,) = re.findall(r"^Log: (.+)$", done.stdout, re.MULTILINE)
    assert "batch finished" in (migration.folder / log).read_text()
    migration.audit()
    assert documents(cut_over(migration, "--json"))[-1] == {"finished": True, "left": 0}


def test_workers_elsewhere_do_the_work(staying: Migration) -> None:
    with staying.workers(1, "--queue", "migrate", "--queue", "verify"):
        assert cut_over(staying, "--processes", "0").returncode == 0
        done = cut_over(staying, "--finish", "--processes", "0")
    assert done.returncode == 0, done.stderr
    assert read_production(staying, 5) == ["v1"] * 5


def test_a_person_switches_and_presses_enter_and_no_pass_overwrites_since(staying: Migration) -> None:
    with in_terminal(
        "cutover", "--yes", "--processes", "1", "--on-conflict", "overwrite", size=(80, 24), **PLAIN
    ) as terminal:
        wait_for(lambda: "then press Enter" in terminal.output)
        made = len(passes(staying))
        wait_for_next_second()
        staying.production.put("f3", b"written after the switch")
        staying.execute("update public.files set updated_at = %s where id = 3", (now(),))
        wait_for(lambda: len(passes(staying)) > made and staying.statuses() <= {"DONE", "ERROR"})
        replace_file(staying, 1, "v2")
        terminal.press("\n")
        assert terminal.wait() == 0, terminal.output
    assert "is complete: 5 entries verified" in terminal.output
    assert read_production(staying, 5) == ["v2", "v1", "written after the switch", "v1", "v1"]


@pytest.mark.parametrize(
    ("first", "second"),
    [(signal.SIGKILL, signal.SIGINT), pytest.param(signal.SIGINT, signal.SIGKILL, marks=pytest.mark.soak)],
)
def test_a_cutover_that_ends_at_any_moment_goes_on(
    staying: Migration, first: signal.Signals, second: signal.Signals
) -> None:
    staying.execute("insert into public.files select n, 'f' || n, %s from generate_series(6, 60) as n", (LONG_AGO,))
    for number in range(6, 61):
        staying.legacy.put(f"f{number}", b"v1")
    with in_terminal("cutover", *ONE, size=(80, 24), **PLAIN) as terminal:
        wait_for(lambda: "DONE" in staying.statuses())
        terminal.process.send_signal(first)
        terminal.wait()
    well(cut_over(staying))
    with in_terminal("cutover", "--finish", *ONE, size=(80, 24), **PLAIN) as terminal:
        wait_for(lambda: staying.execute("select from rowferry.batch_queue where queue_name = 'verify'") != [])
        terminal.process.send_signal(second)
        terminal.wait()
    assert "is complete: 60 entries verified" in well(cut_over(staying)).stdout
    assert read_production(staying, 60) == ["v1"] * 60
    assert len(passes(staying)) >= 3
    staying.check_balance()
