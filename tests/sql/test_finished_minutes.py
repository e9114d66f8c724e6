"""What was finished by the minute: the sums of the batches, kept by heartbeats, so that a curve reads few rows."""

from contextlib import closing

import pytest
from psycopg.rows import DictRow

from rowferry.db.connection import connect
from support.postgres.plans import explained
from support.queue.lines import Lines
from support.queue.rows import add

MIGRATIONS = ("m",)
COLUMNS = "migrated, kept, changed, deleted, missing, conflict, failed, bytes"
OF_BATCHES = f"""
select m.name as migration, q.queue_name, date_trunc('minute', q.finished_at) as minute, count(*) as batches,
sum(q.entry_count)::bigint as entries, {", ".join(f"sum(q.{name})::bigint as {name}" for name in COLUMNS.split(", "))}
from rowferry.batch_queue as q inner join rowferry.migration as m on q.migration_id = m.id
where q.finished_at is not null group by 1, 2, 3 order by minute, queue_name
"""
OF_MINUTES = f"""
select migration, queue_name, minute, batches, entries::bigint, {COLUMNS} from rowferry.finished_minutes
order by minute, queue_name
"""
BEAT = "select * from rowferry.heartbeat('host-a:1:x', 'host-a', 1, '1', 0, 16, '{copy}')"


def ask(lines: Lines, query: str) -> list[DictRow]:
    return lines.session.execute(query.encode()).fetchall()


def finish(lines: Lines, entries: int, ago: str, queue: str = "copy", status: str = "DONE") -> None:
    """Add a batch that was finished so long ago."""
    add(lines, queue, entries, status)
    ask(
        lines,
        f"update rowferry.batch_queue set finished_at = now() - interval '{ago}', bytes = {entries} "
        "where id = (select max(id) from rowferry.batch_queue) returning id",
    )


def count_kept(lines: Lines) -> int:
    return ask(lines, "select count(*) as kept from rowferry.finished_minute")[0]["kept"]


def beat_until_nothing_is_added(lines: Lines) -> int:
    """Return how many heartbeats have added minutes."""
    for beats in range(100):
        before = count_kept(lines)
        ask(lines, BEAT)
        if count_kept(lines) == before:
            return beats
    raise AssertionError("each heartbeat adds minutes")


def finish_some(lines: Lines) -> None:
    add(lines, "copy", 1000)
    for number, ago in enumerate(("3 days", "70 min", "65 min", "65 min", "64 min", "9 min", "130 s", "20 s", "0 s")):
        finish(lines, 10 + number, ago, status="ERROR" if number % 3 == 2 else "DONE")
        finish(lines, 100 + number, ago, "verify")


def test_the_minutes_are_those_of_the_batches_whatever_heartbeats_have_kept(lines: Lines) -> None:
    finish_some(lines)
    expected = ask(lines, OF_BATCHES)
    assert len({row["minute"] for row in expected}) > 5
    assert ask(lines, OF_MINUTES) == expected
    for kept in (True, False):
        assert (beat_until_nothing_is_added(lines) > 0) == kept
        assert ask(lines, OF_MINUTES) == expected
    finish(lines, 7, "1 s")
    assert ask(lines, OF_MINUTES) == ask(lines, OF_BATCHES)


def test_heartbeats_keep_the_minutes_that_are_over_and_pass_over_empty_ones(lines: Lines) -> None:
    finish_some(lines)
    assert beat_until_nothing_is_added(lines) == 3, "three days ago, more than an hour ago, and after that"
    late = "minute >= date_trunc('minute', now() - interval '2 minutes')"
    assert ask(lines, f"select 1 from rowferry.finished_minute where {late}") == []
    assert count_kept(lines) == len(ask(lines, f"select 1 from rowferry.finished_minutes where not {late}"))


@pytest.mark.versions
def test_a_heartbeat_does_not_wait_for_another_that_adds_minutes(lines: Lines, any_database: str) -> None:
    finish_some(lines)
    with closing(Lines(any_database)) as other:
        other.session.execute("begin")
        ask(other, BEAT.replace("host-a:1", "host-a:2"))
        assert count_kept(other) > 0
        lines.session.execute("set lock_timeout = '10s'")
        ask(lines, BEAT)
        assert count_kept(lines) == 0
        other.session.execute("commit")
    beat_until_nothing_is_added(lines)
    assert ask(lines, OF_MINUTES) == ask(lines, OF_BATCHES)


@pytest.mark.versions
def test_a_repeatable_read_that_came_too_late_adds_nothing_twice(lines: Lines, any_database: str) -> None:
    finish_some(lines)
    with closing(Lines(any_database)) as other:
        other.session.execute("begin isolation level repeatable read")
        assert count_kept(other) == 0
        ask(lines, BEAT)
        ask(other, "select rowferry.sum_minutes()")
        other.session.execute("commit")
    beat_until_nothing_is_added(lines)
    assert ask(lines, OF_MINUTES) == ask(lines, OF_BATCHES)


def test_a_requeued_batch_stays_in_the_minute_in_which_it_was_finished(lines: Lines) -> None:
    finish(lines, 10, "1 h", status="ERROR")
    beat_until_nothing_is_added(lines)
    ask(lines, "select rowferry.requeue()")
    assert [row["failed"] for row in ask(lines, OF_MINUTES)] == [10]
    ask(lines, "delete from rowferry.batch_queue returning id")
    assert [row["failed"] for row in ask(lines, OF_MINUTES)] == [10]


def test_old_minutes_are_pruned_and_a_truncated_queue_has_none(lines: Lines) -> None:
    finish_some(lines)
    beat_until_nothing_is_added(lines)
    before = count_kept(lines)
    ask(lines, "select rowferry.prune_leftovers('4 days', 0, 10)")
    assert count_kept(lines) == before
    ask(lines, "select rowferry.prune_leftovers('1 day', 0, 10)")
    assert count_kept(lines) == before - 2
    lines.session.execute("truncate rowferry.batch_queue cascade")
    assert count_kept(lines) == 0


def test_minutes_do_not_stand_in_the_way_of_truncating_all(lines: Lines) -> None:
    finish_some(lines)
    beat_until_nothing_is_added(lines)
    lines.session.execute("truncate rowferry.migration, rowferry.batch_queue cascade")
    assert count_kept(lines) == 0


@pytest.mark.versions
def test_a_day_of_minutes_reads_no_batches_that_are_kept(lines: Lines) -> None:
    ask(
        lines,
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, status, migrated, "
        "started_at, finished_at) select m.id, 'copy', '{}', 1, 'DONE', 1, t, t from rowferry.migration as m, "
        "generate_series(now() - interval '1 hour', now() - interval '5 min', interval '1 s') as t returning 1",
    )
    beat_until_nothing_is_added(lines)
    finish(lines, 5, "10 s")
    lines.session.execute("analyze rowferry.batch_queue")
    with connect("grafana") as connection, explained(connection) as plans:
        connection.execute("select * from rowferry.finished_minutes where minute > now() - interval '1 day'")
        (plan,) = plans.take()
    assert [n["Actual Rows"] for n in plan.nodes if n.get("Relation Name") == "batch_queue"] == [1]


DELETING = "delete from rowferry.batch_queue; delete from rowferry.migration"
TRUNCATING = "truncate rowferry.finished_minute"


@pytest.mark.parametrize("change", [DELETING, TRUNCATING], ids=["deleting a migration", "truncating the minutes"])
def test_a_heartbeat_does_not_wait_for_others(lines: Lines, any_database: str, change: str) -> None:
    finish_some(lines)
    with closing(Lines(any_database)) as other:
        other.session.execute("begin")
        other.session.execute(change.encode())
        lines.session.execute("set lock_timeout = '3s'")
        assert ask(lines, BEAT)[0]["live_workers"] == 1
        other.session.execute("rollback")
        assert count_kept(lines) == 0
    beat_until_nothing_is_added(lines)
    assert ask(lines, OF_MINUTES) == ask(lines, OF_BATCHES)


def test_a_heartbeat_counts_even_where_minutes_cannot_be_added(lines: Lines) -> None:
    finish_some(lines)
    lines.session.execute("alter table rowferry.finished_minute add constraint is_full check (batches < 0)")
    assert ask(lines, BEAT)[0]["live_workers"] == 1
    lines.session.execute("alter table rowferry.finished_minute drop constraint is_full")
    beat_until_nothing_is_added(lines)
    assert ask(lines, OF_MINUTES) == ask(lines, OF_BATCHES)


def test_what_was_pruned_is_not_summed_up_again_from_what_is_left(lines: Lines) -> None:
    for status in ("DONE", "ERROR"):
        finish(lines, 10, "3 days", status=status)
        finish(lines, 10, "2 days", status=status)
    beat_until_nothing_is_added(lines)
    assert [row["batches"] for row in ask(lines, OF_MINUTES)] == [2, 2]
    ask(lines, "select rowferry.prune_batches('1 day', 10)")
    ask(lines, "select rowferry.prune_leftovers('1 day', 0, 10)")
    assert [row["batches"] for row in ask(lines, OF_MINUTES)] == [2], "the last minute says where the next begins"
    assert beat_until_nothing_is_added(lines) == 0


def test_minutes_of_a_clock_that_was_ahead_hide_none_of_the_right_time(lines: Lines) -> None:
    finish(lines, 10, "-1 h")
    ask(
        lines,
        "insert into rowferry.finished_minute select id, 'copy', date_bin('1 minute', now() + interval '1 h', 'epoch'),"
        " 1, 10, 10, 0, 0, 0, 0, 0, 0, 10 from rowferry.migration returning 1",
    )
    finish(lines, 20, "10 min")
    finish(lines, 30, "1 s")
    beat_until_nothing_is_added(lines)
    ask(lines, BEAT)
    assert ask(lines, OF_MINUTES) == ask(lines, OF_BATCHES)


def test_a_pace_of_nothing_tells_no_time_left(lines: Lines) -> None:
    """A listing that has only cut ranges is a finished batch of no entries."""
    finish(lines, 0, "1 minute")
    add(lines, "copy", 10)
    (row,) = ask(lines, "select waiting, rate_10m, time_left from rowferry.progress where queue_name = 'copy'")
    assert (row["waiting"], row["rate_10m"], row["time_left"]) == (10, 0, None)
