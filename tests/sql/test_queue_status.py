"""The views by queue: the order of a chain, what is pending, when it ends, and which queue is the slowest."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from psycopg.rows import DictRow

from rowferry.db.connection import connect
from support.postgres.plans import explained
from support.queue.lines import Lines
from support.queue.rows import add

CHAIN = {"copy": {"next": ["tag"]}, "tag": {"next": ["audit"], "max_claimed": 3}, "audit": {}}


@pytest.fixture
def at_once(lines: Lines) -> Iterator[Lines]:
    """The same with a chain, in one transaction, in which no time passes."""
    with lines.session.transaction():
        lines.register("m", CHAIN)
        yield lines


def serve(lines: Lines) -> None:
    """Let a worker live that serves all queues."""
    lines.session.execute(
        "insert into rowferry.worker (id, host, pid, version, batches, in_flight_limit, queues) "
        "values ('w', 'h', 7, '1', 0, 16, '{copy,tag,audit}')"
    )


def read(lines: Lines, migration: str = "m") -> dict[str, DictRow]:
    """Return the rows by queue, in the order of the chain."""
    query = "select * from rowferry.queue_status where migration = %s order by position"
    return {row["queue_name"]: row for row in lines.session.execute(query, (migration,))}


def read_migration(lines: Lines, migration: str = "m") -> DictRow:
    (row,) = lines.session.execute("select * from rowferry.migration_state where migration = %s", (migration,))
    return row


def pick(rows: dict[str, DictRow], column: str) -> dict[str, Any]:
    return {name: row[column] for name, row in rows.items()}


def test_queues_come_in_the_order_of_their_chain_not_of_their_names(lines: Lines) -> None:
    lines.register("m", {"zeta": {"next": ["beta"]}, "beta": {"next": ["alpha"]}, "alpha": {}})
    rows = read(lines)
    assert list(rows) == ["zeta", "beta", "alpha"]
    assert [row["position"] for row in rows.values()] == [1, 2, 3]
    lines.register("n", {"a": {"next": ["z", "c"]}, "z": {"next": ["b"]}, "c": {"next": ["b"]}, "b": {}})
    first, *_, last = read(lines, "n")
    assert (first, last) == ("a", "b"), "a queue comes after all that lead to it"


def test_without_a_chain_the_queue_that_began_first_is_the_first(lines: Lines) -> None:
    lines.register("m")
    add(lines, "beta", 1, "DONE")
    lines.session.execute("update rowferry.batch_queue set started_at = now() - interval '1 day'")
    add(lines, "alpha", 1, "DONE")
    assert list(read(lines)) == ["beta", "alpha"]


def test_every_queue_with_batches_or_a_row_or_named_by_another_has_one_row(lines: Lines) -> None:
    lines.register("m", {"copy": {"next": ["tag"]}})
    lines.register("other", {"copy": {}})
    add(lines, "loose", 7)
    rows = read(lines)
    assert set(rows) == {"copy", "tag", "loose"}
    assert pick(rows, "entries") == {"copy": 0, "tag": 0, "loose": 7}
    assert list(read(lines, "other")) == ["copy"]


@pytest.mark.versions
def test_what_is_pending_counts_the_queues_before(lines: Lines) -> None:
    lines.register("m", CHAIN)
    add(lines, "copy", 100)
    add(lines, "tag", 20)
    rows = read(lines)
    assert pick(rows, "waiting") == {"copy": 100, "tag": 20, "audit": 0}
    assert pick(rows, "pending") == {"copy": 100, "tag": 120, "audit": 120}
    assert pick(rows, "max_claimed") == {"copy": None, "tag": 3, "audit": None}


def test_a_migration_ends_when_the_last_of_its_queues_does(at_once: Lines) -> None:
    lines = at_once
    serve(lines)
    add(lines, "copy", 1000, "DONE")  # 100 entries/s
    add(lines, "copy", 1000)
    add(lines, "tag", 100, "DONE")  # 10 entries/s
    add(lines, "audit", 200, "DONE")  # 20 entries/s
    rows = read(lines)
    left = {name: timedelta(seconds=seconds) for name, seconds in (("copy", 10), ("tag", 100), ("audit", 100))}
    assert pick(rows, "time_left") == left
    (row,) = lines.session.execute("select seconds_left from rowferry.migration_state where migration = 'm'")
    assert row["seconds_left"] == pytest.approx(100)


@pytest.mark.parametrize(
    "so_that",
    [
        "update rowferry.worker set last_seen_at = now() - interval '31 s'",
        "update rowferry.worker set queues = '{tag,audit}'",
        "update rowferry.batch_queue set run_after = now() + interval '1 h' where status = 'INIT'",
        "update rowferry.migration set paused_at = now()",
    ],
)
def test_no_end_is_told_unless_the_migration_runs(at_once: Lines, so_that: str) -> None:
    """As in rowferry.migration_state: nothing ends where nobody works, or while nothing is due."""
    lines = at_once
    serve(lines)
    for queue in ("copy", "tag", "audit"):
        add(lines, queue, 1000, "DONE")
    add(lines, "copy", 1000)
    assert None not in pick(read(lines), "time_left").values()
    lines.session.execute(so_that.encode())
    assert set(pick(read(lines), "time_left").values()) == {None}
    (row,) = lines.session.execute("select seconds_left from rowferry.migration_state where migration = 'm'")
    assert row["seconds_left"] is None


def test_no_end_is_told_while_a_queue_with_waiting_batches_does_not_move(lines: Lines) -> None:
    lines.register("m", CHAIN)
    serve(lines)
    add(lines, "copy", 1000, "DONE")
    add(lines, "copy", 1000)
    add(lines, "tag", 10)
    rows = read(lines)
    assert rows["copy"]["time_left"] > timedelta(0)
    assert rows["tag"]["time_left"] is None
    assert rows["audit"]["time_left"] is None


def test_a_migration_is_done_once_all_its_queues_are(lines: Lines) -> None:
    lines.register("m", {"copy": {"next": ["tag"]}, "tag": {}})
    assert (read_migration(lines)["state"] == "done") is False
    add(lines, "copy", 10, "DONE")
    add(lines, "tag", 10)
    assert pick(read(lines), "state") == {"copy": "done", "tag": "no_workers"}
    serve(lines)
    assert pick(read(lines), "state") == {"copy": "done", "tag": "running"}
    assert (read_migration(lines)["state"] == "done") is False
    lines.session.execute("update rowferry.batch_queue set status = 'DONE', migrated = 10")
    assert pick(read(lines), "is_done") == {"copy": True, "tag": True}
    assert (read_migration(lines)["state"] == "done") is True
    add(lines, "tag", 10, "ERROR")
    assert pick(read(lines), "state") == {"copy": "done", "tag": "needs_operator"}
    assert (read_migration(lines)["state"] == "done") is False


def test_a_queue_is_not_done_while_one_before_it_has_work(lines: Lines) -> None:
    lines.register("m", {"copy": {"next": ["tag"]}, "tag": {}})
    add(lines, "copy", 10)
    add(lines, "tag", 10, "DONE")
    rows = read(lines)
    assert rows["tag"]["is_done"] is False
    assert rows["tag"]["state"] == "idle"


@pytest.mark.parametrize(
    ("rates", "slowest"),
    [
        ({"copy": 100, "tag": 10, "audit": 10}, "tag"),
        ({"copy": 10, "tag": 10, "audit": 10}, "copy"),
        ({"copy": 100, "tag": 90, "audit": 10}, "audit"),
        ({"copy": 100, "tag": 0, "audit": 10}, "tag"),
    ],
)
def test_the_slowest_queue_is_the_first_that_takes_as_long_as_the_chain(
    at_once: Lines, rates: dict[str, int], slowest: str
) -> None:
    lines = at_once
    for queue, rate in rates.items():
        if rate:
            add(lines, queue, 10 * rate, "DONE")
        add(lines, queue, 1000 if queue == "copy" else 5)
    assert [name for name, row in read(lines).items() if row["is_slowest"]] == [slowest]


def test_a_paused_queue_and_a_paused_migration_say_so(lines: Lines) -> None:
    lines.register("m", {"copy": {"next": ["tag"]}, "tag": {}})
    add(lines, "copy", 10)
    lines.steer(("m", "tag"), "paused_at = now()")
    serve(lines)
    assert pick(read(lines), "state") == {"copy": "running", "tag": "paused"}
    lines.session.execute("update rowferry.migration set paused_at = now()")
    assert pick(read(lines), "state") == {"copy": "paused", "tag": "paused"}


def test_the_oldest_due_batch_is_told_by_queue(lines: Lines) -> None:
    lines.register("m")
    add(lines, "copy", 1)
    add(lines, "tag", 1)
    add(lines, "late", 1)
    for queue, when in (("copy", "- interval '1 h'"), ("tag", "- interval '2 h'"), ("late", "+ interval '1 h'")):
        due = f"update rowferry.batch_queue set run_after = now() {when} where queue_name = '{queue}'"
        lines.session.execute(due.encode())
    rows = read(lines)
    assert rows["late"]["due_since"] is None
    assert rows["tag"]["due_since"] < rows["copy"]["due_since"]
    assert read_migration(lines)["due_since"] == rows["tag"]["due_since"]


@pytest.mark.versions
def test_the_views_read_no_batch_that_waits_but_the_oldest_of_each_queue(lines: Lines) -> None:
    lines.register("m", CHAIN)
    lines.add(("m", "copy"), 20_000)
    lines.add(("m", "tag"), 20_000)
    lines.session.execute("analyze")
    with closing(connect("worker", autocommit=True)) as session, explained(session) as plans:
        for view in ("queue_status", "migration_state"):
            session.execute(f"select * from rowferry.{view}".encode()).fetchall()
            (plan,) = [plan for plan in plans.take() if view in plan.text]
            assert "batch_queue" not in plan.scanned()
            assert plan.touched < 500


def test_a_pace_of_nothing_tells_no_time_left(lines: Lines) -> None:
    """A listing that has only cut ranges is a finished batch of no entries."""
    lines.register("m")
    add(lines, "copy", 0, "DONE")
    add(lines, "copy", 10)
    (row,) = lines.session.execute("select waiting, rate_10m, time_left from rowferry.progress")
    assert (row["waiting"], row["rate_10m"], row["time_left"]) == (10, 0, None)
