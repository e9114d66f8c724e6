"""The views behind boards, alerts and `watch`: a migration's state, its pace and time left, and its events."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from psycopg import sql
from psycopg.rows import DictRow

from support.postgres.ordinary import OWNER, administrator
from support.queue.lines import Lines
from support.queue.rows import add, add_worker, change


@pytest.fixture
def lines(any_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    monkeypatch.setenv("DATABASE_URL", any_database)
    with closing(Lines(any_database)) as lines:
        lines.register("m")
        yield lines


def read(lines: Lines) -> DictRow:
    (row,) = lines.session.execute("select * from rowferry.migration_state where migration = 'm'")
    return row


def read_events(lines: Lines) -> list[tuple[str | None, str, str]]:
    rows = lines.session.execute("select migration, kind, text from rowferry.events order by at, text")
    return [(row["migration"], row["kind"], row["text"]) for row in rows]


def test_a_migration_without_batches_waits(lines: Lines) -> None:
    row = read(lines)
    assert (row["state"], row["waiting"], row["seconds_left"], row["done_share"]) == ("waiting", 0, None, None)


def test_a_migration_runs_while_a_worker_serves_it_and_a_batch_is_due(lines: Lines) -> None:
    add(lines, "copy", 100)
    assert read(lines)["state"] == "no_workers"
    add_worker(lines, "verify")
    assert read(lines)["state"] == "no_workers"
    add_worker(lines, "verify", "copy", name="host-b")
    assert read(lines)["state"] == "running"
    change(lines, "worker", "last_seen_at = now() - interval '31 s'")
    assert read(lines)["state"] == "no_workers"


def test_a_migration_waits_while_all_its_batches_wait_for_their_next_attempt(lines: Lines) -> None:
    add(lines, "copy", 100)
    add_worker(lines, "copy")
    change(lines, "batch_queue", "run_after = now() + interval '1 h'")
    row = read(lines)
    assert (row["state"], row["seconds_left"]) == ("waiting", None)


def test_a_paused_migration_is_paused_whoever_lives(lines: Lines) -> None:
    add(lines, "copy", 100)
    add(lines, "copy", 100, "DONE")
    for _ in range(2):
        change(lines, "migration", "paused_at = now(), pause_reason = 'the bucket is gone'")
        row = read(lines)
        assert (row["state"], row["pause_reason"], row["seconds_left"]) == ("paused", "the bucket is gone", None)
        assert row["paused_at"] is not None
        add_worker(lines, "copy", name=f"host-{_}")


def test_a_migration_is_paused_when_each_queue_with_work_is(lines: Lines) -> None:
    lines.session.execute("select rowferry.register_migration('m', '{}', '{\"copy\": {}, \"tag\": {}}')")
    add(lines, "copy", 100)
    add(lines, "tag", 100)
    add_worker(lines, "copy", "tag")
    lines.steer(("m", "copy"), "paused_at = now()")
    assert read(lines)["state"] == "running"
    lines.steer(("m", "tag"), "paused_at = now()")
    assert read(lines)["state"] == "paused"


def test_a_finished_migration_is_done_or_needs_somebody_even_without_workers(lines: Lines) -> None:
    add(lines, "copy", 100, "DONE")
    row = read(lines)
    assert (row["state"], row["need_somebody"], row["done_share"], row["seconds_left"]) == ("done", 0, 1, None)
    add(lines, "copy", 12, "ERROR")
    row = read(lines)
    assert (row["state"], row["need_somebody"], row["waiting"]) == ("need_somebody", 12, 0)
    assert row["done_share"] == pytest.approx(100 / 112)


def test_entries_set_to_error_by_hand_need_somebody(lines: Lines) -> None:
    add(lines, "copy", 5)
    change(lines, "batch_queue", "status = 'ERROR'")
    row = read(lines)
    assert (row["state"], row["need_somebody"]) == ("need_somebody", 5)


def test_a_listing_in_error_needs_somebody_though_it_has_no_entries(lines: Lines) -> None:
    add(lines, "copy", 0)
    row = read(lines)
    assert (row["waiting"], row["batches_init"]) == (0, 1)
    change(lines, "batch_queue", "status = 'ERROR', finished_at = now()")
    row = read(lines)
    assert (row["state"], row["need_somebody"], row["batches_init"]) == ("need_somebody", 1, 0)


def test_the_next_attempt_is_told_while_none_is_due(lines: Lines) -> None:
    lines.session.execute("select rowferry.register_migration('m', '{}', '{\"copy\": {}, \"tag\": {}}')")
    add(lines, "copy", 100)
    assert read(lines)["next_at"] is None
    add(lines, "tag", 100)
    change(lines, "batch_queue", "run_after = '2099-01-01' where queue_name = 'tag'")
    assert read(lines)["next_at"] is None
    change(lines, "batch_queue", "run_after = '2098-01-01' where queue_name = 'copy'")
    assert read(lines)["next_at"].year == 2098
    lines.steer(("m", "copy"), "paused_at = now()")
    assert read(lines)["next_at"].year == 2099


def test_the_time_left_goes_by_the_pace_of_ten_minutes(lines: Lines) -> None:
    with lines.session.transaction():
        add_worker(lines, "copy")
        add(lines, "copy", 6000, "DONE")
        change(lines, "batch_queue", "started_at = now() - interval '10 min', finished_at = now() - interval '5 min'")
        add(lines, "copy", 100)
        row = read(lines)
        assert row["rate_1m"] == 0
        assert row["seconds_left"] == pytest.approx(10)
        assert row["ends_at"] is not None
        change(lines, "worker", "stopped_at = now()")
        assert read(lines)["seconds_left"] is None


def test_the_pace_does_not_count_the_time_of_a_pause(lines: Lines) -> None:
    add_worker(lines, "copy")
    add(lines, "copy", 100)
    change(lines, "migration", "paused_at = now() - interval '8 min'")
    change(lines, "migration", "paused_at = null")
    with lines.session.transaction():
        change(lines, "event", "at = now() - interval '100 s' where kind = 'resumed'")
        add(lines, "copy", 1000, "DONE")
        change(lines, "batch_queue", "started_at = now() - interval '9 min' where status = 'DONE'")
        assert read(lines)["seconds_left"] == pytest.approx(10)


def test_no_time_left_is_told_while_a_queue_with_work_is_paused(lines: Lines) -> None:
    lines.session.execute("select rowferry.register_migration('m', '{}', '{\"copy\": {}, \"tag\": {}}')")
    add_worker(lines, "copy", "tag")
    for queue in ("copy", "tag"):
        add(lines, queue, 100, "DONE")
        add(lines, queue, 100)
    assert read(lines)["seconds_left"] is not None
    lines.steer(("m", "tag"), "paused_at = now()")
    row = read(lines)
    assert (row["state"], row["seconds_left"]) == ("running", None)


def test_a_pause_is_an_event_whoever_makes_it(lines: Lines) -> None:
    lines.session.execute("select * from rowferry.pause('m')").fetchall()
    lines.session.execute("select * from rowferry.pause('m')").fetchall()
    lines.session.execute("select * from rowferry.resume('m')").fetchall()
    change(lines, "migration", "paused_at = now(), pause_reason = 'no rights'")
    add(lines, "copy", 1)
    lines.session.execute("select * from rowferry.pause(p_queue_name => 'copy')").fetchall()
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
def test_a_requeue_is_one_event_however_many_batches_there_are(lines: Lines) -> None:
    for _ in range(3):
        add(lines, "copy", 1, "ERROR")
    lines.session.execute("select rowferry.requeue()").fetchall()
    change(lines, "batch_queue", "entry_count = 2")
    assert read_events(lines) == [("m", "requeued", "queue copy: batches requeued")]


def test_a_requeue_of_many_batches_spends_one_number(lines: Lines) -> None:
    for _ in range(3):
        add(lines, "copy", 1, "ERROR")
    lines.session.execute("select rowferry.requeue()").fetchall()
    lines.session.execute("select * from rowferry.pause('m')").fetchall()
    rows = lines.session.execute("select id from rowferry.event order by id").fetchall()
    assert [row["id"] for row in rows] == [1, 2]


def test_batches_that_a_new_pass_renews_were_requeued_by_nobody(lines: Lines) -> None:
    add(lines, "verify", 1, "ERROR")
    change(lines, "batch_queue", "payload = '{\"read_again\": []}'")
    renew = "select rowferry.renew_batches(id, 'verify', '{\"read_again\": []}') as renewed from rowferry.migration"
    assert lines.session.execute(renew.encode()).fetchall() == [{"renewed": 1}]
    assert read_events(lines) == []
    change(lines, "batch_queue", "status = 'ERROR', finished_at = now()")
    lines.session.execute("select rowferry.requeue()").fetchall()
    assert read_events(lines) == [("m", "requeued", "queue verify: batches requeued")]


def test_a_requeue_by_hand_in_the_transaction_of_a_renewal_is_recorded(lines: Lines) -> None:
    """A program may do both: what the renewal sets to be left out ends with it."""
    add(lines, "verify", 1, "ERROR")
    change(lines, "batch_queue", "payload = '{\"read_again\": []}'")
    with lines.session.transaction():
        renew = "select rowferry.renew_batches(id, 'verify', '{\"read_again\": []}') from rowferry.migration"
        lines.session.execute(renew.encode()).fetchall()
        change(lines, "batch_queue", "status = 'ERROR', finished_at = now()")
        assert lines.session.execute("select rowferry.requeue() as count").fetchall() == [{"count": 1}]
    assert read_events(lines) == [("m", "requeued", "queue verify: batches requeued")]


def test_a_lost_worker_is_an_event_and_one_that_signed_off_is_not(lines: Lines) -> None:
    add_worker(lines, "copy", name="a", silent="31 s")
    add_worker(lines, "copy", name="b", silent="29 s")
    add_worker(lines, "copy", name="c", silent="31 s")
    change(lines, "worker", "stopped_at = now() where id = 'c'")
    assert read_events(lines) == [(None, "worker_lost", "a: worker process 7 was lost")]


def test_old_events_are_pruned(lines: Lines) -> None:
    lines.session.execute("select * from rowferry.pause('m')").fetchall()
    change(lines, "event", "at = now() - interval '2 days'")
    lines.session.execute("select rowferry.prune_leftovers('3 days', 0, 10)")
    assert len(read_events(lines)) == 1
    lines.session.execute("select rowferry.prune_leftovers('1 day', 0, 10)")
    assert read_events(lines) == []


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
    ages = "select seconds from rowferry.oldest_transactions where of = 'others'"
    assert lines.session.execute(ages).fetchall() == [{"seconds": 0}]
    with closing(Lines(any_database)) as other:
        other.session.execute("begin isolation level repeatable read")
        other.session.execute("select 1 from rowferry.migration")
        assert lines.session.execute(ages).fetchall() == [{"seconds": None}]
        give_away_measuring(any_database, "pg_read_all_stats")
        (row,) = lines.session.execute(ages)
        assert row["seconds"] > 0


@pytest.mark.versions
def test_dead_rows_are_told_of_the_queue_and_of_the_tables_of_plans(lines: Lines) -> None:
    lines.session.execute("create table public.avatars (id int); create table public.other (id int)")
    lines.session.execute("create table public.parts (id int) partition by list (id)")
    lines.session.execute("create table public.part_one partition of public.parts for values in (1)")
    plan = '{"entries": [{"table": "public.avatars"}, {"table": "parts"}, {"table": "public.gone"}]}'
    change(lines, "migration", f"plan = '{plan}'")
    found = {row["table_name"]: row["dead_rows"] for row in lines.session.execute("select * from rowferry.dead_rows")}
    assert {name for name in found if name.startswith("public.")} == {"public.avatars", "public.parts"}
    assert "rowferry.batch_queue" in found
    assert None not in found.values()


def test_a_migration_is_stalled_when_nothing_has_moved_for_five_minutes(lines: Lines) -> None:
    add(lines, "copy", 100, "DONE")
    add(lines, "copy", 100)
    change(lines, "batch_queue", "run_after = now() - interval '2 h'")
    add_worker(lines, "copy")
    change(lines, "worker", "started_at = now() - interval '1 h'")
    assert read(lines)["state"] == "running"
    change(lines, "batch_tally", "finished_at = now() - interval '6 min'")
    row = read(lines)
    assert (row["state"], row["seconds_left"]) == ("stalled", None)
    change(lines, "migration", "paused_at = now()")
    assert read(lines)["state"] == "paused"
    change(lines, "migration", "paused_at = null")
    assert read(lines)["state"] == "running", "it was resumed just now"


@pytest.mark.parametrize(
    "moves",
    [
        "update rowferry.worker set started_at = now()",
        "update rowferry.batch_queue set run_after = now()",
        "update rowferry.worker set in_hand = jsonb_build_object((select max(id) from rowferry.batch_attempt), 7), "
        "reported_at = now()",
        "insert into rowferry.upload (production, key, migration_id, batch_id, attempt_id) "
        "select 'p', 'k', q.migration_id, q.id, 1 from rowferry.batch_queue as q",
        "update rowferry.batch_attempt set number = 1, started_at = now() - interval '29 min'",
    ],
    ids=["a worker came", "a batch became due", "entries were settled", "a part was written", "a first attempt"],
)
def test_what_moves_or_could_not_move_earlier_is_not_stalled(lines: Lines, moves: str) -> None:
    add(lines, "copy", 100)
    change(lines, "batch_queue", "run_after = now() - interval '2 h'")
    add_worker(lines, "copy")
    change(lines, "worker", "started_at = now() - interval '1 h'")
    lines.session.execute(
        "insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at) "
        "select q.id, 0, 2, 'host-a', now() - interval '50 min' from rowferry.batch_queue as q"
    )
    assert read(lines)["state"] == "stalled"
    lines.session.execute(moves.encode())
    assert read(lines)["state"] == "running"


def test_a_queue_that_moves_keeps_the_migration_from_being_stalled(lines: Lines) -> None:
    lines.session.execute("select rowferry.register_migration('m', '{}', '{\"copy\": {}, \"tag\": {}}')")
    for queue in ("copy", "tag"):
        add(lines, queue, 100)
    change(lines, "batch_queue", "run_after = now() - interval '2 h'")
    add_worker(lines, "copy", "tag")
    change(lines, "worker", "started_at = now() - interval '1 h'")
    assert read(lines)["state"] == "stalled"
    add(lines, "tag", 100, "DONE")
    assert read(lines)["state"] == "running"
