"""Every SQL query of the dashboards on a real PostgreSQL, asked by Grafana's own role."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from drawing.queries import View
from rowferry.db.connection import connect
from rowferry_cli.setup.grants import apply_grants, compose_grants
from support.entries.entry_table import EntryTable
from support.postgres.roles import log_in, new_role
from support.queue.queue_states import acting, missing
from support.screens.grafana import Target, list_annotations, list_targets, list_variables


@pytest.fixture
def busy_queue(table: EntryTable) -> Iterator[EntryTable]:
    """A queue in which batches are waiting, claimed, done and failed."""
    table.add_legacy(range(1, 51)).enqueue(batch_size=10)
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


def test_every_sql_panel_returns_data_and_curves_a_time_and_numbers(
    busy_queue: EntryTable, grafana: "psycopg.Connection[Any]"
) -> None:
    assert len(SQL_TARGETS) > 8, "a test without a subject cannot fail"
    assert any(target.query["format"] == "time_series" for target in SQL_TARGETS)
    for target in SQL_TARGETS:
        rows = read(target, now_shown(), grafana)
        assert rows, str(target)
        if target.query["format"] == "time_series":
            assert next(iter(rows[0])) == "time", str(target)
            numbers = [value for name, value in rows[0].items() if name != "metric"]
            assert all(float(value) >= 0 for value in numbers if value is not None), str(target)


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
    busy_queue.execute("select rowferry.set_pause(true, 'avatars')")
    busy_queue.execute("update rowferry.event set at = at - interval '2 hours'")
    ((began, until, text, kind),) = read_marks("Pauses", grafana)
    assert (bool(text), kind) == (True, "paused")
    assert until - began == pytest.approx(timedelta(hours=2), abs=timedelta(seconds=60)), "it lasts"
    busy_queue.execute("select rowferry.set_pause(false, 'avatars')")
    ((_, resumed, *_),) = read_marks("Pauses", grafana)
    busy_queue.execute("select rowferry.set_pause(true, 'avatars')")
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
    for name in ("migrated", "missing", "failed"):
        finished = [sum(row[name] or 0 for row in rows) * step for rows, step in ((hour, 10), (day, 30))]
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
    busy_queue.execute("select rowferry.set_pause(true, 'avatars')")
    assert {row["at this pace"] for row in read_pace(grafana, ahead)} == {None}
    busy_queue.execute("select rowferry.set_pause(false, 'avatars')")
    busy_queue.execute("update rowferry.worker set last_seen_at = now() - interval '1 min'")
    assert {row["at this pace"] for row in read_pace(grafana, ahead)} == {None}


def read(target: Target, view: View, connection: "psycopg.Connection[Any]") -> list[dict[str, Any]]:
    cursor = connection.execute(view.expand_sql(target.query["rawSql"]).encode())
    names = [column.name for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def read_pace(connection: "psycopg.Connection[Any]", view: View) -> list[dict[str, Any]]:
    (target,) = [target for target in SQL_TARGETS if target.panel == "Entries a second"]
    return read(target, view, connection)


def test_every_sql_variable_returns_values(busy_queue: EntryTable, grafana: "psycopg.Connection[Any]") -> None:
    variables = list_variables("migration")
    assert grafana.execute(variables["migration"].encode()).fetchall() == [("avatars",)]
    assert grafana.execute(now_shown().expand_sql(variables["queue"]).encode()).fetchall() == [("migrate",)]
