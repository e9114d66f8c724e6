"""What is recorded of a queue: pauses, requeues, lost workers; and what boards ask of the whole database."""

from contextlib import closing

import pytest
from psycopg import sql

from support.postgres.ordinary import OWNER, administrator
from support.queue.lines import Lines
from support.queue.rows import add, add_worker, change

MIGRATIONS = ("m",)
RENEW = "select rowferry.renew_batches(id, 'verify', '{\"read_again\": []}') as renewed from rowferry.migration"
REQUEUED = ("m", "requeued", "queue verify: batches requeued")
OTHERS_AGE = "select seconds from rowferry.oldest_transactions where of = 'others'"


def read_events(lines: Lines) -> list[tuple[str | None, str, str]]:
    rows = lines.session.execute("select migration, kind, text from rowferry.events order by at, text")
    return [(row["migration"], row["kind"], row["text"]) for row in rows]


def requeue(lines: Lines) -> int:
    (row,) = lines.session.execute("select rowferry.requeue() as count").fetchall()
    return row["count"]


def test_a_pause_is_an_event_whoever_makes_it(lines: Lines) -> None:
    for is_paused in (True, True, False):
        lines.session.execute("select * from rowferry.set_pause(%s, 'm')", (is_paused,)).fetchall()
    change(lines, "migration", "paused_at = now(), pause_reason = 'no rights'")
    add(lines, "copy", 1)
    lines.session.execute("select * from rowferry.set_pause(true, p_queue_name => 'copy')").fetchall()
    lines.steer(("m", "copy"), "paused_at = null")
    lines.steer(("m", "copy"), "priority = 3")
    assert read_events(lines) == [
        ("m", "paused", "paused"),
        ("m", "resumed", "resumed"),
        ("m", "paused", "paused: no rights"),
        ("m", "paused", "queue copy: paused"),
        ("m", "resumed", "queue copy: resumed"),
    ]


@pytest.mark.versions
def test_a_requeue_is_one_event_and_one_number_however_many_batches_there_are(lines: Lines) -> None:
    for _ in range(3):
        add(lines, "copy", 1, "ERROR")
    requeue(lines)
    change(lines, "batch_queue", "entry_count = 2")
    assert read_events(lines) == [("m", "requeued", "queue copy: batches requeued")]
    lines.session.execute("select * from rowferry.set_pause(true, 'm')").fetchall()
    rows = lines.session.execute("select id from rowferry.event order by id").fetchall()
    assert [row["id"] for row in rows] == [1, 2]


def test_batches_that_a_new_pass_renews_were_requeued_by_nobody(lines: Lines) -> None:
    add(lines, "verify", 1, "ERROR")
    change(lines, "batch_queue", "payload = '{\"read_again\": []}'")
    assert lines.session.execute(RENEW.encode()).fetchall() == [{"renewed": 1}]
    assert read_events(lines) == []
    change(lines, "batch_queue", "status = 'ERROR', finished_at = now()")
    requeue(lines)
    assert read_events(lines) == [REQUEUED]


def test_a_requeue_by_hand_in_the_transaction_of_a_renewal_is_recorded(lines: Lines) -> None:
    """A program may do both: what the renewal sets to be left out ends with it."""
    add(lines, "verify", 1, "ERROR")
    change(lines, "batch_queue", "payload = '{\"read_again\": []}'")
    with lines.session.transaction():
        lines.session.execute(RENEW.encode()).fetchall()
        change(lines, "batch_queue", "status = 'ERROR', finished_at = now()")
        assert requeue(lines) == 1
    assert read_events(lines) == [REQUEUED]


def test_a_lost_worker_is_an_event_and_one_that_signed_off_is_not(lines: Lines) -> None:
    with lines.session.transaction():  # in which no time passes
        for name, silent in (("a", "31 s"), ("b", "29 s"), ("c", "31 s")):
            add_worker(lines, "copy", name=name, silent=silent)
        change(lines, "worker", "stopped_at = now() where id = 'c'")
        assert read_events(lines) == [(None, "worker_lost", "a: worker process 7 was lost")]


def test_old_events_are_pruned(lines: Lines) -> None:
    lines.session.execute("select * from rowferry.set_pause(true, 'm')").fetchall()
    change(lines, "event", "at = now() - interval '2 days'")
    for older_than, left in (("3 days", 1), ("1 day", 0)):
        lines.session.execute("select rowferry.prune_leftovers(%s)", (older_than,))
        assert len(read_events(lines)) == left


@pytest.mark.versions
def test_the_oldest_transaction_is_told_for_rowferry_and_for_others(lines: Lines, any_database: str) -> None:
    def ages() -> dict[str, float | None]:
        rows = lines.session.execute("select * from rowferry.oldest_transactions")
        return {row["of"]: row["seconds"] for row in rows}

    assert ages() == {"rowferry": 0, "others": 0}
    with closing(Lines(any_database)) as other:
        other.session.execute("begin isolation level repeatable read")
        other.session.execute("select 1 from rowferry.migration")
        found = ages()
        assert found["rowferry"] == 0
        assert (found["others"] or 0) > 0
        other.session.execute("set application_name = 'rowferry worker x'")
        found = ages()
        assert found["others"] == 0
        assert (found["rowferry"] or 0) > 0


def give_away_measuring(dsn: str, role: str) -> None:
    """Let the function that measures transactions run with the rights of another role."""
    names = (sql.Identifier(role), sql.Identifier(OWNER))
    change = sql.SQL(
        "alter function rowferry.measure_transactions owner to {}; "
        "grant execute on function rowferry.measure_transactions to {}"
    )
    with administrator(dsn) as connection:
        connection.execute(change.format(*names))


def test_the_age_of_a_transaction_that_postgresql_hides_is_unknown(lines: Lines, any_database: str) -> None:
    give_away_measuring(any_database, "pg_signal_backend")
    assert lines.session.execute(OTHERS_AGE.encode()).fetchall() == [{"seconds": 0}]
    with closing(Lines(any_database)) as other:
        other.session.execute("begin isolation level repeatable read")
        other.session.execute("select 1 from rowferry.migration")
        assert lines.session.execute(OTHERS_AGE.encode()).fetchall() == [{"seconds": None}]
        give_away_measuring(any_database, "pg_read_all_stats")
        (row,) = lines.session.execute(OTHERS_AGE.encode())
        assert row["seconds"] > 0
