"""Promises of `rowferry watch`: what a frame says, how it fits, what the keys do, and what it outlives."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.rows import DictRow

from rowferry.batch import Verdict
from rowferry.db.connection import Connection, connect
from rowferry.db.schema import initialise
from rowferry_cli.setup.grants import Purpose, apply_grants, compose_grants
from rowferry_cli.watch import snapshot as reading
from rowferry_cli.watch.keys import KeyHandler
from rowferry_cli.watch.lists import draw_finished
from rowferry_cli.watch.poller import LONGEST_INTERVAL, Poller, State, choose_wait
from support.entries.entry_table import EntryTable
from support.postgres.ordinary import as_owner, ordinary_postgres
from support.postgres.roles import log_in, new_role
from support.processes.cli import refused
from support.processes.processes import wait_for
from support.processes.terminal import ALTERNATE_SCREEN, ORDINARY_SCREEN, in_terminal, without_size
from support.queue.queue_states import Actor, acting, denied, missing
from support.screens.watching import HELP, RUNNING, make_snapshot, shown, snapshot_now


@pytest.fixture
def busy(table: EntryTable) -> Iterator[list[Actor]]:
    """Six batches of ten: one done, two in ERROR, one claimed, one deferred, one pending; two workers."""
    table.add_legacy(range(1, 61)).enqueue(10)
    with acting(table, "fra-1:4711:a", "fra-2:4712:b") as (first, second):
        first.finish(first.claim())
        first.finish(first.claim(), failures=[missing(11), missing(12)])
        second.finish(second.claim(), failures=[denied(21)])
        held = second.claim()
        resting = first.claim()
        first.finish(resting, failures=[denied(41)], verdict=Verdict.RETRY)
        for actor in (first, second):
            actor.send_heartbeat()
        yield [first, second]
        held.connection.close()


@pytest.mark.usefixtures("busy")
def test_a_frame_shows_progress_workers_and_what_they_hold_and_the_last_errors() -> None:
    lines = shown(State(snapshot_now()))
    text = "\n".join(lines)
    assert lines[0].startswith("avatars · app on db:5432")
    assert lines[1].startswith("public.avatars.path ━")
    assert lines[1].endswith("60% 36 / 60")
    assert "1 of 6 batches done · 2 in ERROR · " in text
    assert "migrated 36 · missing 2 · failed 1 · waiting 21" in text
    assert "Batches to retry: 1, the next at " in text
    assert "after 1 failed (AccessDenied)" in text
    assert "Workers: 2, claimed batches: 1" in text
    assert "fra-1  4711  idle" in text
    assert re.search(r"fra-2  4712  batch 4 for \d+ s\b", text)
    assert lines[lines.index("Latest errors") + 1].startswith("1 failed  AccessDenied")
    assert "2 missing NoSuchKey" in text
    assert "image/u11/me.png" in text
    assert lines[-1] == HELP


@pytest.mark.usefixtures("busy")
def test_what_is_done_inside_an_open_batch_moves_the_bar_the_rate_and_the_workers_line(table: EntryTable) -> None:
    told = "jsonb_build_object(c.attempt_id, 4), reported_at = now()"
    table.execute(
        f"update rowferry.worker set in_hand = {told} from rowferry.claimed_batches as c where c.worker_id = id"
    )
    lines = shown(State(snapshot_now()))
    text = "\n".join(lines)
    assert lines[1].endswith("66% 40 / 60")
    assert "done in open batches 4 · waiting 17" in text
    assert re.search(r"fra-2  4712  batch 4: 4/10 for \d+ s\b", text)


def test_one_hundred_per_cent_is_said_only_when_nothing_waits_or_needs_an_operator() -> None:
    """The view says how much is settled: rowferry.share_done."""
    text = "\n".join(shown(State(make_snapshot(1, 0, 0, entries=100_000, done_share=0.99999))))
    assert " 99% 99,999 / 100,000" in text


@settings(deadline=None, max_examples=40)
@given(
    tables=st.integers(0, 40),
    workers=st.integers(0, 200),
    reasons=st.integers(0, 50),
    queues=st.integers(1, 40),
    trouble=st.booleans(),
)
def test_a_frame_fits_a_terminal_of_80_by_24_whatever_there_is_to_show(
    tables: int, workers: int, reasons: int, queues: int, trouble: bool
) -> None:
    names = tuple(f"a_queue_with_a_long_name_{number}" for number in range(queues))
    why = f"A person has paused it ({'why ' * 30}); then: rowferry resume"
    paused = replace(
        make_snapshot(tables, workers, reasons, names), state=RUNNING | {"state": "paused", "what_to_do": why}
    )
    state = State(paused, trouble="The database is away. " * 9 if trouble else "", notice="06:12:40 Paused.")
    lines = shown(state, names[-1], footer=("06:12:40 Paused.", HELP))
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[-1] == HELP
    everything = shown(state, height=None)
    assert len(everything) >= len(lines) - 1


FINISH = "update rowferry.batch_queue set status = 'DONE', kept = entry_count, missing = 0 where status <> 'DONE'"


@pytest.fixture
def chain(table: EntryTable) -> EntryTable:
    """Two queues over ten entries: the first is done; of the second, five are kept, four wait and one is missing.

    The second is one that is not installed here.
    """
    table.add_legacy(range(1, 11)).enqueue()
    table.execute(
        "update rowferry.batch_queue set status = 'DONE', migrated = 10, finished_at = now(), started_at = now()"
    )
    table.execute(
        "insert into rowferry.queue (migration_id, name, next, max_claimed) "
        "select m.id, v.name, v.next::text[], v.most "
        "from rowferry.migration as m, (values ('migrate', '{thumbnails}', null), ('thumbnails', '{}', 3)) "
        "as v (name, next, most) "
        "on conflict on constraint queue_name_key do update set next = excluded.next"
    )
    table.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, status, kept, missing, "
        "started_at, finished_at) select m.id, 'thumbnails', '{\"entries\": \"public.avatars.path\"}', v.* "
        "from rowferry.migration as m, (values (5, 'DONE', 5, 0, now(), now()), (1, 'ERROR', 0, 1, now(), now()), "
        "(4, 'INIT', 0, 0, null, null)) as v"
    )
    return table


@pytest.mark.usefixtures("chain")
def test_one_queue_is_looked_at_the_first_that_is_not_done_or_the_chosen_one() -> None:
    snapshot = snapshot_now()
    first = KeyHandler().press("n", snapshot)
    assert first == KeyHandler(queue="migrate")
    assert first.press("n", snapshot) == KeyHandler(queue="thumbnails")
    text = "\n".join(shown(State(snapshot), "migrate"))
    assert "> migrate" in text
    assert "migrate: 1 of 1 batches done" in text
    assert "migrated 10" in text
    assert "No batch is in ERROR." in text


def test_the_queue_that_is_looked_at_is_among_those_that_fit() -> None:
    names = tuple(f"queue_{number}" for number in range(30))
    for name in (names[0], names[15], names[29]):
        lines = shown(State(make_snapshot(1, 1, 1, names)), name)
        assert any(line.startswith(f"> {name} ") for line in lines)
        assert any("more queues" in line for line in lines)


def test_a_queue_keeps_its_errors_and_last_batches_beside_hundreds_of_newer_ones_of_another(chain: EntryTable) -> None:
    """Each queue has the last ones of its own."""
    chain.execute("update rowferry.batch_queue set finished_at = now() - interval '5 min' where queue_name = 'migrate'")
    chain.execute(
        "update rowferry.batch_queue set status = 'ERROR', migrated = 0, missing = 1 where queue_name = 'migrate'"
    )
    chain.execute(
        "insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt, failed_at) "
        "select id, 1, 'image/u1/me.png', 'missing', 'NoSuchKey', 'gone', 1, now() - interval '5 min' "
        "from rowferry.batch_queue where queue_name = 'migrate'"
    )
    chain.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, status, failed, started_at, "
        "finished_at, error) select m.id, 'thumbnails', '{}', 1, 'ERROR', 1, now(), now(), 'reason ' || n "
        "from rowferry.migration as m, generate_series(1, 265) as n"
    )
    snapshot = snapshot_now()
    migrate, thumbnails = snapshot.queues
    assert [row["reason"] for row in snapshot.rows("reasons", migrate)] == ["NoSuchKey"]
    assert [row["status"] for row in snapshot.rows("finished", migrate)] == ["ERROR"]
    assert [len(snapshot.rows(name, thumbnails)) for name in ("reasons", "finished")] == [200, 60]


def test_all_that_is_shown_is_read_at_one_moment(chain: EntryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes while a snapshot is read is in the next one."""
    read_chain = reading.read_chain

    def change_first(connection: Connection, migration: str | None) -> list[DictRow]:
        chain.execute(FINISH)
        return read_chain(connection, migration)

    monkeypatch.setattr(reading, "read_chain", change_first)
    snapshot = snapshot_now()
    assert snapshot.state["state"] == "no_workers"
    assert [row["waiting"] for row in snapshot.rows("tables", snapshot.queues[1])] == [snapshot.queues[1]["waiting"]]
    assert snapshot_now().state["state"] == "done"


def test_the_command_is_told_of_a_bug_of_the_reading_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not shown as a database that does not answer."""
    poller = Poller("avatars", timedelta(seconds=1))
    bug = KeyError("a column")

    def fail(_action: object) -> timedelta:
        raise bug

    monkeypatch.setattr(poller, "_poll", fail)
    poller.start()
    wait_for(lambda: poller.state.failure is bug)


@pytest.mark.usefixtures("chain")
def test_a_queue_can_be_chosen_from_the_start_and_what_is_not_there_is_a_mistake() -> None:
    assert "> migrate" in run_watch("--queue", "migrate").stdout
    for wrong, words in (
        (("--queue", "tgas"), "Migration avatars has no queue 'tgas'; it has migrate, thumbnails."),
        (("--migration", "nobody"), "There is no migration 'nobody' in this database; there is avatars."),
    ):
        assert refused(run_watch(*wrong)) == f"rowferry: {words}\n"


def test_watching_takes_a_tenth_of_the_time_at_most() -> None:
    second = timedelta(seconds=1)
    assert choose_wait(2 * second, 0.01 * second) == 2 * second
    assert choose_wait(2 * second, second) == 10 * second
    assert choose_wait(2 * second, 60 * second) == LONGEST_INTERVAL
    assert choose_wait(60 * second, second) == 60 * second


def test_before_the_first_snapshot_it_says_that_it_reads_or_what_is_in_the_way_and_only_q_means_anything() -> None:
    assert "Reading the queue …" in shown(State())
    silent = shown(State(trouble="The database does not answer."))
    assert "The database does not answer." in silent
    assert "Reading the queue …" not in silent
    assert [KeyHandler().press(key, None) for key in "prn?"] == [KeyHandler()] * 4
    assert KeyHandler().press("q", None).is_over


@pytest.mark.usefixtures("busy")
def test_p_pauses_r_resumes_and_q_leaves_the_terminal_as_it_was(table: EntryTable) -> None:
    with in_terminal("watch", "--interval", "0.2") as terminal:
        terminal.wait_for("avatars · ", HELP, "2 in ERROR", "fra-2")
        assert ALTERNATE_SCREEN in terminal.output
        assert terminal.settings != terminal.settings_before
        terminal.press("p")
        terminal.wait_for("Paused since ", "Paused: running batches 1, waiting 2.")
        assert table.execute("select from rowferry.migration where paused_at is not null")
        terminal.press("r")
        terminal.wait_for("Resumed: open batches 3.", gone="Paused since ")
        terminal.press("\x1b[A")  # an arrow is no key of ours, whatever its letters are
        terminal.press("q")
        assert terminal.wait() == 0
        wait_for(lambda: ORDINARY_SCREEN in terminal.output)
        assert terminal.settings == terminal.settings_before


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(how: str) -> None:
    with in_terminal("watch") as terminal:
        terminal.wait_for("avatars · ", HELP)
        if how == "Ctrl-C":
            terminal.press("\x03")
        else:
            terminal.process.send_signal(getattr(signal, how))
        assert terminal.wait() == 0
        assert terminal.settings == terminal.settings_before
        wait_for(lambda: ORDINARY_SCREEN in terminal.output)
        assert "Traceback" not in terminal.output


@pytest.mark.usefixtures("busy")
def test_it_follows_the_size_of_the_window() -> None:
    with in_terminal("watch", size=(80, 24)) as terminal:
        assert "Latest errors" in terminal.wait_for(HELP, "fra-2")
        terminal.resize(40, 12)
        terminal.wait_for("p pause · r resume · ? help · q quit")


@pytest.mark.usefixtures("busy")
def test_without_colours_it_says_the_same() -> None:
    with in_terminal("watch", NO_COLOR="1") as terminal:
        terminal.wait_for("1 of 6 batches done · 2 in ERROR", HELP)
        assert "\x1b[3" not in terminal.output
    with in_terminal("watch", TERM="dumb") as terminal:
        terminal.wait_for("1 of 6 batches done · 2 in ERROR")
        assert "\x1b" not in terminal.output
        assert terminal.wait() == 0


def test_it_says_that_the_database_is_away_and_goes_on_when_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with ordinary_postgres() as server:
        dsn = as_owner(server.dsn())
        monkeypatch.setenv("DATABASE_URL", dsn)
        with connect("test", autocommit=True) as connection:
            initialise(connection)
        table = EntryTable(dsn)
        table.add_legacy(range(1, 11)).enqueue()
        table.close()
        with in_terminal("watch", "--interval", "0.2") as terminal:
            terminal.wait_for("0 of 1 batches done")
            server.stop(signal.SIGQUIT)
            terminal.wait_for("No update since ", "0 of 1 batches done")
            terminal.press("p")
            terminal.wait_for("Not done: pause.")
            server.start()
            terminal.wait_for("0 of 1 batches done", gone="No update since ")
            terminal.press("p")
            terminal.wait_for("Paused since ")
            terminal.press("q")
            assert terminal.wait() == 0


def run_watch(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rowferry_cli", "watch", "--once", *arguments]
    return subprocess.run(command, env=without_size(os.environ), capture_output=True, text=True, check=False)


@pytest.fixture
def log_in_as(table: EntryTable, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Purpose], None]]:
    """Return what turns DATABASE_URL into that of a new role with the grants of a purpose."""
    with ExitStack() as until:

        def log_in_as(purpose: Purpose) -> None:
            role = until.enter_context(new_role(table.dsn))
            with connect("test", autocommit=True) as connection:
                apply_grants(connection, compose_grants(role, [purpose], table.read_plan()))
            monkeypatch.setenv("DATABASE_URL", log_in(table, role))

        yield log_in_as


@pytest.mark.usefixtures("busy")
def test_a_workers_role_may_watch_and_is_told_that_it_may_not_press_a_key(
    table: EntryTable, log_in_as: Callable[[Purpose], None]
) -> None:
    log_in_as("worker")
    with in_terminal("watch", "--interval", "0.2") as terminal:
        terminal.wait_for("2 in ERROR", HELP)
        terminal.press("p")
        terminal.wait_for("PostgreSQL does not allow this role to do that", "2 in ERROR", HELP)
    assert not table.execute("select from rowferry.migration where paused_at is not null")


@pytest.mark.parametrize(("lines", "drawn"), [(2, 0), (3, 1)])
def test_last_batches_take_three_lines_or_none(lines: int, drawn: int) -> None:
    assert len(list(draw_finished([], lines, datetime.now(UTC)))) == drawn
