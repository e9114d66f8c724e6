"""Promises of `rowferry watch` in terminals of four sizes, and of what it says in each state."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from rowferry.db.connection import Connection
from rowferry_cli.status.chain import read_chain
from rowferry_cli.watch.keys import list_keys
from rowferry_cli.watch.pace import draw_chart
from rowferry_cli.watch.poller import State
from support.entries.entry_table import EntryTable
from support.processes.terminal import in_terminal
from support.queue.queue_states import Actor, acting, missing
from support.screens.watching import MIGRATION, NOW, RUNNING, change_queue, make_running, shown, snapshot_now

SIZES = [(60, 12), (80, 24), (120, 40), (200, 50)]


@pytest.fixture
def killed(table: EntryTable) -> Iterator[list[Actor]]:
    """Seven batches of ten: one done, one in ERROR. The first worker died with the third; the second has it now."""
    table.add_legacy(range(1, 71)).enqueue(10)
    with acting(table, "fra-1:4711:a", "fra-2:4712:b") as (first, second):
        first.finish(first.claim())
        second.finish(second.claim(), failures=[missing(11)])
        first.die(first.claim())
        table.execute("update rowferry.worker set last_seen_at = now() - interval '12 s' where pid = 4711")
        held = second.claim()
        second.send_heartbeat()
        yield [second]
        held.connection.close()


def test_a_running_migration_says_since_when_how_long_and_until_when_by_the_clock_of_the_database() -> None:
    text = "\n".join(shown(State(make_running())))
    end = NOW + timedelta(seconds=200)
    assert f"began 12 min 00 s ago · 3 min 20 s left · ends at {end:%H:%M:%S}" in text
    (first,) = [line for line in text.splitlines() if line.startswith("5 of 10 batches done · 10 entries/s ")]
    assert first.split()[-1] == draw_chart([float(n % 7) for n in range(72)], 30, 1)[0]
    assert text.splitlines()[0].endswith(f"running  {NOW:%H:%M:%S}")
    ahead = replace(make_running(), migration=MIGRATION | {"moment": NOW + timedelta(hours=1)})
    text = "\n".join(shown(State(ahead)))
    assert "began 1 h 12 min ago" in text


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("paused", "paused"),
        ("no_workers", "no workers"),
        ("needs_operator", "needs an operator"),
        ("stalled", "stalled"),
    ],
)
def test_there_is_no_time_left_while_nobody_works(size: tuple[int, int], state: str, word: str) -> None:
    """The view of the database has none then; the words are those of the dashboards (`dashboards/colours.py`)."""
    running = make_running()
    assert " left" in "\n".join(shown(State(running), width=size[0], height=size[1]))
    stopped = replace(running, state=RUNNING | {"state": state})
    lines = shown(State(stopped), width=size[0], height=size[1])
    assert not any(" left" in line or "ends at" in line for line in lines)
    assert lines[0].endswith(f"{word}  {NOW:%H:%M:%S}")


def test_a_finished_migration_says_how_long_it_took() -> None:
    ended = change_queue(make_running(), pending_batches=0, is_done=True, finished_at=NOW - timedelta(minutes=2))
    lines = shown(State(replace(ended, state=RUNNING | {"state": "done"})))
    assert f"took 10 min 00 s, until {NOW - timedelta(minutes=2):%H:%M:%S}" in lines
    assert "done" in lines[0]


@pytest.mark.usefixtures("killed")
def test_a_killed_worker_is_silent_and_its_batch_is_counted_once() -> None:
    snapshot = snapshot_now()
    assert snapshot.queues[0]["claimed"] == 1
    lines = shown(State(snapshot))
    assert "Workers: 2, silent: 1, claimed batches: 1" in lines
    assert any(line.startswith("fra-1  4711  silent 1") for line in lines)
    assert len([line for line in lines if "batch 3 for" in line]) == 1


@pytest.mark.usefixtures("killed")
def test_a_worker_is_silent_until_the_moment_of_the_snapshot(
    table: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not until its query ran: a snapshot that takes seconds would call every worker silent."""
    began: list[datetime] = []

    def take_long(connection: Connection, migration: str | None) -> list[DictRow]:
        began.extend(row["now"] for row in connection.execute("select now(), pg_sleep(0.05)"))
        return read_chain(connection, migration)

    monkeypatch.setattr("rowferry_cli.watch.snapshot.read_chain", take_long)
    snapshot = snapshot_now()
    seen = {row["pid"]: row["last_seen_at"] for row in table.execute("select pid, last_seen_at from rowferry.worker")}
    silent = {pid: began[0] - last_seen_at for pid, last_seen_at in seen.items()}
    assert {row["pid"]: row["silent_for"] for row in snapshot.workers} == silent


def test_a_lost_worker_is_said(table: EntryTable) -> None:
    table.enqueue()
    with acting(table, "fra-1:4711:a", "fra-2:4712:b"):
        table.execute("update rowferry.worker set last_seen_at = now() - interval '1 min' where pid = 4711")
        assert "Workers: 1, lost within an hour: 1, claimed batches: 0" in shown(State(snapshot_now()))


def test_a_worker_that_skips_the_migration_is_not_called_idle(table: EntryTable) -> None:
    table.add_legacy(range(1, 11)).enqueue()
    with acting(table, "fra-1:4711:a") as (actor,):
        actor.send_heartbeat()
        error = "The production bucket b cannot be used: AccessDenied"
        (migration,) = table.execute("select id from rowferry.migration")
        actor.ledger.call("update_worker", "fra-1:4711:a", Jsonb({"unusable": {migration["id"]: error}}))
        snapshot = snapshot_now()
        lines = shown(State(snapshot))
    assert snapshot.state["state"] == "no_workers"
    assert f"1 worker skips it: {error}." in lines
    assert "fra-1  4711  skips it" in lines


WITHIN: dict[str, Any] = {"max_replica_lag": timedelta(seconds=5), "replica_lag": timedelta(seconds=1)}
THROTTLED = [{"place": "https://s3.example/prod", "operation": "CopyObject", "rate": 900.0}]


@pytest.mark.parametrize(
    ("bounds", "throttled", "of_queue", "said"),
    [
        (
            WITHIN | {"replica_lag": timedelta(seconds=12)},
            [],
            {},
            "A replica is 12 s behind: the plan's max_replica_lag is 5 s.",
        ),
        ({}, THROTTLED, {}, "The server throttles CopyObject to 900 requests/s: https://s3.example/prod"),
        ({"max_rows_per_second": 10.0}, [], {}, "The plan's max_rows_per_second holds it at 10 rows/s."),
        (
            {},
            [],
            {"max_claimed": 7, "claimed": 7, "due_since": NOW},
            "max_claimed allows 7 claimed batches of migrate.",
        ),
        (WITHIN | {"max_rows_per_second": 100.0}, [], {"max_claimed": 7, "claimed": 6, "due_since": NOW}, None),
    ],
)
def test_what_holds_it_up_is_said(
    bounds: DictRow, throttled: list[DictRow], of_queue: DictRow, said: str | None
) -> None:
    snapshot = replace(make_running(), migration=MIGRATION | bounds, throttled=throttled)
    lines = shown(State(change_queue(snapshot, **of_queue)))
    assert [line for line in lines if line == said or "plan's" in line] == ([said] if said else [])


def test_the_bound_of_rows_is_that_of_all_queues_together() -> None:
    running = make_running()
    two = replace(running, queues=[*running.queues] * 2, migration=MIGRATION | {"max_rows_per_second": 20.0})
    assert "The plan's max_rows_per_second holds it at 20 rows/s." in shown(State(two), "migrate")


@pytest.mark.parametrize("size", SIZES[2:])
def test_a_large_terminal_is_used(size: tuple[int, int]) -> None:
    width, height = size
    lines = shown(State(make_running(3, 20, 5)), width=width, height=height)
    text = "\n".join(lines)
    assert len(lines) > height * 3 // 4
    assert "Entries/s, the last" in text
    assert "Last batches" in text
    assert "2 failed" in text
    assert re.search(r"host-0\.example\.net +8 +8 +10 +7 for 7 s", text)
    assert all(len(line.split("━")) < width // 2 + 1 for line in lines)


@pytest.mark.by_day("size0", "size3")
@pytest.mark.parametrize("size", SIZES)
def test_it_is_whole_in_a_terminal_of_each_size(table: EntryTable, killed: list[Actor], size: tuple[int, int]) -> None:
    width, height = size
    killed[0].send_heartbeat()  # the other one is silent since so long only that it still counts
    table.execute("update rowferry.worker set last_seen_at = now() - interval '12 s' where pid = 4711")
    with in_terminal("watch", "--interval", "0.2", size=size) as terminal:
        words = ["avatars · ", "1 of 7 batches done", "Workers: 2", "Latest errors", list_keys(width)]
        words += ["Last batches", "Entries/s", "oldest batch"] if width >= 120 else []
        screen = terminal.wait_for(*words)
        lines = [line.rstrip() for line in screen.rstrip().split("\n")]
        assert len(lines) <= height
        assert max(map(len, lines)) <= width
        terminal.press("?")
        terminal.wait_for("Shows the next queue", "Quits, as Ctrl-C does.", gone="Latest errors")
        terminal.press("h")
        terminal.wait_for("Latest errors", gone="Quits, as Ctrl-C does.")
        terminal.press("q")
        assert terminal.wait() == 0


def test_the_pace_is_that_of_each_slice_since_the_queue_began(table: EntryTable) -> None:
    table.add_legacy(range(1, 61)).enqueue(10)
    (row,) = table.execute("select date_bin('10 s', now() - interval '57 s', 'epoch') as began")
    ended = "update rowferry.batch_queue set status = 'DONE', migrated = entry_count, started_at = %(began)s, "
    ended += "finished_at = %(began)s + %(after)s where id = %(id)s"
    for batch, seconds in enumerate((1, 8, 12, 47), start=1):
        table.execute(ended, row | {"after": timedelta(seconds=seconds), "id": batch})
    snapshot = snapshot_now()
    assert list(snapshot.list_rates(snapshot.queues[0]))[:5] == [2, 1, 0, 0, 1]
    assert len(snapshot.list_rates(snapshot.queues[0])) in {5, 6}
    assert snapshot.list_rates(None) == ()


def test_what_a_server_lets_through_is_read_of_each_worker(table: EntryTable) -> None:
    table.add_legacy(range(1, 11)).enqueue()
    with acting(table, "fra-1:4711:a", "fra-2:4712:b"):
        where = f"https://s3.example/{table.plan['production']['bucket']}"
        rates = f'{{"{where} CopyObject": 12.5, "https://s3.example/of-another-migration HeadObject": 3}}'
        table.execute(f"update rowferry.worker set request_rates = '{rates}'")
        lines = shown(State(snapshot_now()))
    assert f"The server throttles CopyObject to 25 requests/s: {where}" in lines
    assert "HeadObject" not in "".join(lines)
