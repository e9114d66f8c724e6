"""Every SQL query of the dashboards on a real PostgreSQL, asked by Grafana's own role."""

import os
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from drawing.queries import View
from rowferry.db.connection import connect
from rowferry.db.grants import apply_grants, compose_grants
from support.entries.entry_table import EntryTable
from support.postgres.roles import log_in, new_role
from support.processes.cli import run_rowferry
from support.queue.queue_states import acting, missing
from support.screens.grafana import (
    FOLDER,
    Target,
    list_annotations,
    list_targets,
    list_variables,
)


@pytest.fixture
def busy_queue(table: EntryTable) -> Iterator[EntryTable]:
    """A queue in which batches are waiting, claimed, done and failed."""
    table.add_legacy(range(1, 51))
    table.enqueue(batch_size=10)
    with acting(table, "host-a:1:aa", "host-b:2:bb") as (one, other):
        one.finish(one.claim())
        other.finish(other.claim(), failures=[missing(11), missing(12)])
        held = one.claim()
        yield table
        held.connection.close()


@pytest.fixture
def grafana(table: EntryTable) -> Iterator["psycopg.Connection[Any]"]:
    """A connection of a role that was made by `rowferry init --grants ROLE --for grafana`."""
    with new_role(table.dsn) as role:
        with connect("init", autocommit=True) as connection:
            apply_grants(connection, compose_grants(role, ["grafana"], None))
        with psycopg.connect(log_in(table, role), autocommit=True) as connection:
            yield connection


def now_shown(*queues: str) -> View:
    now = datetime.now(UTC)
    chosen = {"migration": ["avatars"], "queue": queues or ["migrate"]}
    return View(now - timedelta(hours=1), now + timedelta(minutes=1), chosen)


SQL_TARGETS = [target for target in list_targets() if target.is_sql]


def test_every_sql_panel_returns_data(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    empty = [
        str(target)
        for target in SQL_TARGETS
        if not grafana.execute(now_shown().expand_sql(target.query["rawSql"]).encode()).fetchall()
    ]
    assert empty == []
    assert len(SQL_TARGETS) > 10


def test_no_sql_panel_is_in_error_while_nothing_can_be_chosen(
    table: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    """Before the first `rowferry enqueue` there is no migration and no queue: Grafana writes an empty list."""
    now = datetime.now(UTC)
    view = View(now - timedelta(hours=1), now, {"migration": "", "queue": []})
    marks, asked = [marks_of(name) for name in MARKS], list_variables("migration")
    queries = [
        *(target.query["rawSql"] for target in SQL_TARGETS),
        *(asked[name] for name in ("migration", "queue")),
        *marks,
    ]
    assert [grafana.execute(view.expand_sql(query).encode()).fetchall() for query in queries] == [[]] * len(queries)


MARKS = ("Pauses", "Requeues and lost workers")


def marks_of(name: str) -> str:
    """Return the query of marks on the dashboard Migration."""
    (query,) = [a["target"]["rawSql"] for a in list_annotations("migration") if a["name"] == name]
    return query


def read_marks(name: str, connection: "psycopg.Connection[Any]") -> list[tuple[Any, ...]]:
    return connection.execute(now_shown().expand_sql(marks_of(name)).encode()).fetchall()


def test_a_pause_is_marked_from_its_beginning_to_its_end(
    busy_queue: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    busy_queue.execute("select rowferry.pause('avatars')")
    busy_queue.execute("update rowferry.event set at = at - interval '2 hours'")
    ((began, until, text, kind),) = read_marks("Pauses", grafana)
    assert (bool(text), kind) == (True, "paused")
    assert until - began == pytest.approx(timedelta(hours=2), abs=timedelta(seconds=60)), "it lasts"
    busy_queue.execute("select rowferry.resume('avatars')")
    ((_, resumed, *_),) = read_marks("Pauses", grafana)
    busy_queue.execute("select rowferry.pause('avatars')")
    ((_, until, *_), (second, *_)) = read_marks("Pauses", grafana)
    assert until == resumed < second
    assert read_marks("Requeues and lost workers", grafana) == []


def test_a_requeue_and_a_lost_worker_are_marked(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    busy_queue.execute("update rowferry.batch_queue set status = 'INIT' where status = 'ERROR'")
    busy_queue.execute("update rowferry.worker set last_seen_at = now() - interval '1 min' where host = 'host-a'")
    assert sorted(kind for *_, kind in read_marks("Requeues and lost workers", grafana)) == ["requeued", "worker_lost"]


def test_a_stall_is_zeros_and_the_entries_left_stay(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    busy_queue.execute(
        "update rowferry.batch_queue set finished_at = finished_at - interval '10 minutes' where status <> 'INIT'"
    )
    rows = read_pace(grafana, now_shown())
    worked = [row["migrated"] + row["missing"] for row in rows if row["migrated"] is not None]
    left = [row["left"] for row in rows if row["left"] is not None]
    busy = next(place for place, count in enumerate(worked) if count > 0)
    assert len(worked) > 300
    assert set(worked[:busy]) == {0}
    assert set(worked[-50:]) == {0}
    assert (left[0], left[-1]) == (50, 30)
    assert all(earlier >= later for earlier, later in pairwise(left))


def test_a_day_shows_the_same_sums_as_an_hour(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    # at one instant: a change of second between them would show 40 in one step of ten seconds
    busy_queue.execute("update rowferry.batch_queue set finished_at = now() - interval '10 min' where status <> 'INIT'")
    chosen, now = now_shown().values, datetime.now(UTC)
    hour = read_pace(grafana, View(now - timedelta(hours=1), now, chosen))
    day = read_pace(grafana, View(now - timedelta(hours=24), now, chosen, 30))
    steps = [later["time"] - earlier["time"] for earlier, later in pairwise(day)]
    assert set(steps) == {60}, "by the minute, whatever the width of the panel"
    for name in ("migrated", "missing", "failed"):
        finished = [sum(row[name] or 0 for row in rows) * step for rows, step in ((hour, 10), (day, 60))]
        assert finished[0] == pytest.approx(float(finished[1]))
    assert {row["left"] for row in hour if row["left"] is not None} == {50, 30}
    assert {row["left"] for row in day if row["left"] is not None} == {50, 30}
    assert sum(row["migrated"] or 0 for row in day) > 0


def test_entries_left_are_projected_into_the_future(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    busy_queue.execute(
        "update rowferry.batch_queue set finished_at = finished_at - interval '1 minute' where status <> 'INIT'"
    )
    now = datetime.now(UTC)
    chosen = now_shown().values
    shown = View(now - timedelta(hours=1), now + timedelta(minutes=1), chosen)
    present = [row["at this pace"] for row in read_pace(grafana, shown)]
    assert next(value for value in present if value is not None) == 30
    assert set(present[:-9]) == {None}
    ahead = [row for row in read_pace(grafana, View(now, now + timedelta(hours=1), chosen)) if row["left"] is None]
    projected = [row["at this pace"] for row in ahead]
    assert projected[0] <= 30
    assert projected[-1] == 0
    assert all(earlier >= later for earlier, later in pairwise(projected))


def test_nothing_is_projected_while_it_is_paused_or_nobody_works(
    busy_queue: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    now = datetime.now(UTC)
    ahead = View(now - timedelta(minutes=5), now + timedelta(hours=1), now_shown().values)
    assert {row["at this pace"] for row in read_pace(grafana, ahead)} > {None}
    until_now = View(now - timedelta(minutes=5), now, now_shown().values)
    assert {row["at this pace"] for row in read_pace(grafana, until_now)} == {None}, "a dot is no projection"
    busy_queue.execute("select rowferry.pause('avatars')")
    assert {row["at this pace"] for row in read_pace(grafana, ahead)} == {None}
    busy_queue.execute("select rowferry.resume('avatars')")
    busy_queue.execute("update rowferry.worker set last_seen_at = now() - interval '1 min'")
    assert {row["at this pace"] for row in read_pace(grafana, ahead)} == {None}


def test_one_screen_has_one_truth(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    """The row of all migrations, the six numbers and the tables say the same share, entries left and speed."""
    busy_queue.execute(  # long ago beside what the looks take
        "update rowferry.batch_queue set started_at = now() - interval '10 s', finished_at = now() - interval '2 s' "
        "where status <> 'INIT'"
    )
    (row,) = read_rows("All migrations", grafana)
    (now,) = read_rows("State", grafana)
    (table,) = read_rows("Progress by table", grafana)
    pace = read_rows("Entries a second", grafana)
    left = [step["left"] for step in pace if step["left"] is not None][-1]
    # 50 entries: 18 are migrated, 2 are missing, 30 wait
    assert (float(row["done"]), float(now["done"]), float(table["done"])) == (36, 36, 36)
    assert (row["entries left"], left, table["waiting"]) == (30, 30, 30)
    (queue,) = read_rows("Queues of the migration", grafana)
    assert (queue["left"], float(queue["done"]), queue["failed"]) == (30, 36, 2)
    assert [now["speed"], queue["entries/s"]] == pytest.approx([row["entries/s"]] * 2, rel=0.5)  # a moment later
    assert queue["entries/s"] > 1


def test_what_is_done_has_neither_a_speed_nor_all_entries_while_some_need_an_operator(
    table: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    table.add_legacy(range(1, 51))
    table.enqueue(batch_size=25)
    with acting(table, "host-a:1:aa") as (worker,):
        worker.finish(worker.claim())
        worker.finish(worker.claim(), failures=[missing(41), missing(42)])
        (row,) = read_rows("All migrations", grafana)
        (now,) = read_rows("State", grafana)
    assert (row["state"], float(row["done"]), float(now["done"])) == ("need_somebody", 96, 96)
    assert (row["entries/s"], now["speed"]) == (0, 0)


def read_rows(panel: str, connection: "psycopg.Connection[Any]") -> list[dict[str, Any]]:
    (target,) = [target for target in SQL_TARGETS if target.panel == panel]
    cursor = connection.execute(now_shown().expand_sql(target.query["rawSql"]).encode())
    names = [column.name for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def read_pace(connection: "psycopg.Connection[Any]", view: View) -> list[dict[str, Any]]:
    (target,) = [target for target in SQL_TARGETS if target.panel == "Entries a second"]
    cursor = connection.execute(view.expand_sql(target.query["rawSql"]).encode())
    names = [column.name for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def test_every_sql_variable_returns_values(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    variables = list_variables("migration")
    assert grafana.execute(variables["migration"].encode()).fetchall() == [("avatars",)]
    queues = now_shown().expand_sql(variables["queue"]).encode()
    assert grafana.execute(queues).fetchall() == [("migrate",)]


def test_curves_have_a_time_and_numbers(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    curves = [target for target in SQL_TARGETS if target.query["format"] == "time_series"]
    assert curves
    for target in curves:
        cursor = grafana.execute(now_shown().expand_sql(target.query["rawSql"]).encode())
        names, row = [column.name for column in cursor.description or []], cursor.fetchone()
        assert row is not None
        assert names[0] == "time"
        numbers = [value for name, value in zip(names, row, strict=True) if name != "metric"]
        assert all(float(value) >= 0 for value in numbers if value is not None)


def test_the_command_beside_an_error_requeues_it(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    (target,) = [target for target in SQL_TARGETS if target.panel == "Errors by reason"]
    ((queue, outcome, reason, entries, batches, *_, command),) = read(target, grafana)
    assert (queue, outcome, reason, entries, batches) == ("migrate", "missing", "NoSuchKey", 2, 1)
    type_in_shell(command)
    assert read(target, grafana) == []
    assert busy_queue.statuses() == {"INIT", "DONE"}


@pytest.mark.parametrize("reason", ["it's 100 %", r"a_b\c 'd' %", "x" * 300])
def test_the_command_is_right_for_any_reason(
    reason: str, busy_queue: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    busy_queue.execute("update rowferry.entry_failure set reason = %s", (reason,))
    busy_queue.execute("update rowferry.batch_queue set status = 'ERROR' where status = 'ERROR'")  # sums reasons up
    (target,) = [target for target in SQL_TARGETS if target.panel == "Errors by reason"]
    ((*_, command),) = read(target, grafana)
    type_in_shell(command)
    assert read(target, grafana) == []


def test_a_batch_that_was_parked_by_hand_has_a_command_too(
    busy_queue: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    busy_queue.execute(
        "update rowferry.batch_queue set status = 'ERROR' where id = "
        "(select id from rowferry.batch_queue where status = 'INIT' order by id limit 1 for update skip locked)"
    )
    (target,) = [target for target in SQL_TARGETS if target.panel == "Errors by reason"]
    commands = {row[1]: row[-1] for row in read(target, grafana)}
    assert set(commands) == {"missing", "parked"}
    type_in_shell(commands["parked"])
    assert [row[1] for row in read(target, grafana)] == ["missing"]


def type_in_shell(command: str) -> None:
    """Run what an operator is told to type."""
    program, *arguments = shlex.split(command)
    assert program == "rowferry"
    done = run_rowferry(arguments, os.environ, FOLDER)
    assert done.returncode == 0, done.stderr


def read(target: Target, connection: "psycopg.Connection[Any]") -> list[tuple[Any, ...]]:
    return connection.execute(now_shown().expand_sql(target.query["rawSql"]).encode()).fetchall()
