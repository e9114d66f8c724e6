"""The views behind boards, alerts and `watch`: a migration's state, its rate and time left, and its events."""

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


@pytest.mark.versions
def test_what_needs_a_person_first_is_the_most_urgent(lines: Lines) -> None:
    for name in ("errors", "unserved", "by_worker", "by_person", "waits", "runs", "over"):
        lines.register(name)
    for name, queue, status in (
        ("over", "copy", "DONE"),
        ("runs", "copy", "INIT"),
        ("by_person", "copy", "INIT"),
        ("by_worker", "copy", "INIT"),
        ("unserved", "tag", "INIT"),
        ("errors", "copy", "ERROR"),
    ):
        add(lines, queue, 1, status, migration=name)
    add_worker(lines, "copy")
    change(lines, "migration", "paused_at = now(), paused_by_worker = name = 'by_worker' where name like 'by%'")
    rows = lines.session.execute(
        "select urgency, array_agg(migration order by migration) as those from rowferry.migration_state "
        "where migration <> 'm' group by urgency order by urgency"
    ).fetchall()
    assert [(row["urgency"], row["those"]) for row in rows] == [
        (1, ["by_worker", "unserved"]),
        (2, ["errors"]),
        (3, ["by_person", "waits"]),
        (4, ["runs"]),
        (5, ["over"]),
    ]


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
    with lines.session.transaction():  # in which no time passes
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


# Since when, what holds it, and what to type


def read_why(lines: Lines) -> tuple[str, str, str]:
    (row,) = lines.session.execute("select state, cause, what_to_do from rowferry.migration_state")
    return row["state"], row["cause"], row["what_to_do"]


def ago(lines: Lines, column: str = "since") -> float:
    """Return how many seconds ago that was."""
    (row,) = lines.session.execute(
        sql.SQL("select extract(epoch from now() - {})::float8 as ago from rowferry.migration_state").format(
            sql.Identifier(column)
        )
    )
    return row["ago"]


def test_a_migration_that_runs_or_is_done_is_held_by_nothing(lines: Lines) -> None:
    add(lines, "copy", 100, "DONE")
    change(lines, "batch_tally", "finished_at = now() - interval '1 h', started_at = now() - interval '2 h'")
    assert read_why(lines) == ("done", "", "")
    assert ago(lines) == pytest.approx(3600, abs=60)
    add(lines, "copy", 100)
    add_worker(lines, "copy")
    assert read_why(lines) == ("running", "", "")
    assert ago(lines) == pytest.approx(7200, abs=60), "since its first attempt began"


def test_a_migration_needs_an_operator_since_its_last_batch_ended(lines: Lines) -> None:
    add(lines, "copy", 12, "ERROR")
    change(lines, "batch_tally", "finished_at = now() - interval '1 h'")
    assert read_why(lines) == ("need_somebody", "errors", "All that is left has failed; see why: rowferry errors")
    assert ago(lines) == pytest.approx(3600, abs=60)


def test_a_pause_says_who_made_it_and_why(lines: Lines) -> None:
    add(lines, "copy", 1)
    lines.session.execute("select * from rowferry.pause('m', p_reason => 'Black Friday')").fetchall()
    row = read(lines)
    what = "A person has paused it (Black Friday); then: rowferry resume"
    assert (row["state"], row["cause"], row["what_to_do"]) == ("paused", "person", what)
    assert (row["paused_by"], row["since"]) == (OWNER, row["paused_at"])
    lines.session.execute("select * from rowferry.resume('m')").fetchall()
    change(lines, "migration", "paused_at = now(), pause_reason = 'no rights', paused_by_worker = true")
    what = "A worker has paused it (no rights); then: rowferry resume"
    assert read_why(lines) == ("paused", "worker", what)
    lines.session.execute("select * from rowferry.resume('m')").fetchall()
    lines.session.execute("select * from rowferry.pause('m', 'copy')").fetchall()
    what = "All its queues with work are paused; see why: rowferry queues"
    assert read_why(lines) == ("paused", "queues", what)
    (queue,) = lines.session.execute("select paused_by from rowferry.queue")
    assert queue == {"paused_by": OWNER}
    lines.session.execute("select * from rowferry.resume('m', 'copy')").fetchall()
    (queue,) = lines.session.execute("select paused_by from rowferry.queue")
    assert (queue, read(lines)["paused_by"]) == ({"paused_by": None}, None)


def test_without_workers_it_is_since_the_last_one_left_or_work_was_due(lines: Lines) -> None:
    add(lines, "copy", 100)
    change(lines, "batch_queue", "run_after = now() - interval '3 h'")
    assert ago(lines) == pytest.approx(10800, abs=60)
    add_worker(lines, "copy", name="gone", silent="1 h")
    add_worker(lines, "verify", name="other", silent="1 min")
    assert read_why(lines) == (
        "no_workers",
        "no_workers",
        "No live worker serves its queues; start one: rowferry worker",
    )
    assert ago(lines) == pytest.approx(3600, abs=60)


def test_a_silent_worker_serves_nothing(lines: Lines) -> None:
    """As for the workers that may take its batches over then: rowferry.begin_attempt."""
    add(lines, "copy", 100)
    with lines.session.transaction():  # in which no time passes
        add_worker(lines, "copy", silent="9 s")
        assert read(lines)["state"] == "running"
    change(lines, "worker", "last_seen_at = now() - interval '10 s'")
    assert read(lines)["state"] == "no_workers"


def test_workers_that_skip_it_say_why(lines: Lines) -> None:
    add(lines, "copy", 100)
    add_worker(lines, "copy")
    change(
        lines,
        "worker",
        "unusable = (select jsonb_build_object(id || ' copy', 'No such bucket') from rowferry.migration)",
    )
    what = "Workers skip it (No such bucket); mend that, and they go on; see which: rowferry status"
    assert read_why(lines) == ("no_workers", "skipped", what)


def test_a_wait_says_what_for(lines: Lines) -> None:
    assert read_why(lines) == ("waiting", "no_batches", "It has no batch yet; add some: rowferry enqueue")
    add(lines, "copy", 100)
    add_worker(lines, "copy")
    change(
        lines,
        "batch_queue",
        "run_after = now() + interval '1 min', error = 'Timeout', started_at = now() - interval '9 s'",
    )
    what = "No batch is due before its next attempt (Timeout); see when: rowferry watch"
    assert read_why(lines) == ("waiting", "retries", what)
    assert ago(lines) == pytest.approx(9, abs=5)
    change(lines, "batch_queue", "run_after = 'infinity'")
    assert read_why(lines) == ("waiting", "deferred", "All its batches are deferred for ever; set their run_after")


def put_back(
    lines: Lines, ago: str, outcomes: str | None = '{"migrated": 0, "kept": 0}', error: str = "HTTP 503"
) -> None:
    lines.session.execute(
        "insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at, finished_at, verdict, "
        "error, outcomes) select max(id), 0, 1, 'host-a', now(), now() - %s::interval, 'RELEASED', %s, %s::jsonb "
        "from rowferry.batch_queue",
        (ago, error, outcomes),
    )


def test_batches_that_are_only_put_back_wait_for_a_server(lines: Lines) -> None:
    add(lines, "copy", 100)
    add_worker(lines, "copy")
    for before in ("9 min", "5 min", "1 min"):
        assert read(lines)["state"] == "running"
        put_back(lines, before)
    what = "Batches are only put back (HTTP 503); workers go on by themselves; look at the server: rowferry check"
    assert read_why(lines) == ("waiting", "server_away", what)
    assert ago(lines) == pytest.approx(540, abs=30)
    change(lines, "batch_queue", "run_after = now() - interval '1 h'")
    assert read(lines)["state"] == "waiting", "and not stalled"
    (queue,) = lines.session.execute("select state from rowferry.queue_status")
    assert queue == {"state": "waiting"}
    add(lines, "copy", 100, "DONE")
    assert read(lines)["cause"] == "", "a batch has ended since"


@pytest.mark.parametrize("ends", [("9 min", "8 min", "5 min"), ("1 min", "1 min")])
def test_batches_that_were_put_back_once_wait_for_nothing(lines: Lines, ends: tuple[str, ...]) -> None:
    """Fewer than three, or longer ago than the longest wait between two of them."""
    add(lines, "copy", 100)
    add_worker(lines, "copy")
    for before in ends:
        put_back(lines, before)
    assert read(lines)["state"] == "running"


@pytest.mark.parametrize("outcomes", ['{"migrated": 3, "kept": 0}', None])
def test_batches_that_move_or_were_put_back_by_a_stop_wait_for_nothing(lines: Lines, outcomes: str | None) -> None:
    add(lines, "copy", 100)
    add_worker(lines, "copy")
    for _ in range(3):
        put_back(lines, "1 min", outcomes, "the worker was told to stop")
    assert read(lines)["state"] == "running"


def test_the_queue_that_holds_the_end_is_named(lines: Lines) -> None:
    lines.session.execute(
        'select rowferry.register_migration(\'m\', \'{}\', \'{"copy": {"next": ["tag"]}, "tag": {}}\')'
    )
    add_worker(lines, "copy", "tag")
    for queue, entries in (("copy", 1000), ("tag", 10)):
        add(lines, queue, entries, "DONE")
        add(lines, queue, 100)
    assert read(lines)["held_by"] == "tag"
    ended = lines.session.execute("select queue_name, is_slowest, time_left from rowferry.queue_status").fetchall()
    (held,) = [row for row in ended if row["is_slowest"]]
    assert held["time_left"] == max(row["time_left"] for row in ended)


def test_a_queue_that_workers_pass_over_waits_while_another_moves(lines: Lines) -> None:
    add(lines, "copy", 100)
    add(lines, "tag", 100)
    add_worker(lines, "copy", "tag")
    change(lines, "worker", "started_at = now() - interval '1 h'")
    change(lines, "batch_queue", "run_after = now() - interval '1 h'")
    states = "select queue_name, state from rowferry.queue_status"
    assert {row["state"] for row in lines.session.execute(states)} == {"stalled"}
    add(lines, "copy", 100, "DONE")
    assert {row["queue_name"]: row["state"] for row in lines.session.execute(states)} == {
        "copy": "running",
        "tag": "waiting",
    }
    assert read(lines)["state"] == "running"


def test_work_that_is_due_for_nobody_is_not_called_running(lines: Lines) -> None:
    """One queue has no worker, the batches of the other wait for their next attempt."""
    add(lines, "copy", 100)
    add(lines, "tag", 100)
    add_worker(lines, "tag")
    change(lines, "batch_queue", "run_after = now() + interval '1 h' where queue_name = 'tag'")
    assert read(lines)["state"] == "no_workers"
