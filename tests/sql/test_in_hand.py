"""The entries that workers have settled inside open batches: told once a second, counted once, and lost honestly."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from psycopg import errors
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from support.queue.lines import Lines
from support.queue.rows import add, add_worker, change

MIGRATIONS = ("m",)
BEGIN = """
insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at, verdict, finished_at)
select
    max(q.id), 0, 1, %(worker)s, now() - %(ago)s::interval, %(verdict)s::text,
    case when %(verdict)s::text is not null then now() end
from rowferry.batch_queue as q where q.status = 'INIT'
returning id
"""


@pytest.fixture(autouse=True)
def _at_work(lines: Lines) -> Iterator[None]:
    """Let a worker live beside one batch of 500 waiting entries, all in one transaction: no time passes."""
    with lines.session.transaction():
        add_worker(lines, "copy", name="a")
        add(lines, "copy", 500)
        yield


def begin(lines: Lines, worker: str, *, ago: str = "10 s", verdict: str | None = None) -> int:
    """Begin with the newest open batch; return the attempt's id."""
    (row,) = lines.session.execute(BEGIN, {"worker": worker, "ago": ago, "verdict": verdict})
    return row["id"]


def tell(lines: Lines, worker: str, entries: dict[int, int]) -> None:
    lines.session.execute("select rowferry.update_worker(%s, %s)", (worker, Jsonb({"in_hand": entries})))


def read(lines: Lines, view: str) -> DictRow:
    (row,) = lines.session.execute(f"select * from rowferry.{view}".encode())
    return row


def counts(lines: Lines) -> tuple[Any, ...]:
    row = read(lines, "progress")
    return row["waiting"], row["in_hand"]


def test_what_is_settled_inside_an_open_batch_is_known_everywhere(lines: Lines) -> None:
    tell(lines, "a", {begin(lines, "a"): 300})
    assert counts(lines) == (500, 300)
    state = read(lines, "migration_state")
    assert (state["waiting"], state["done_share"], state["rate_1m"]) == (200, 0.6, 30)
    assert state["seconds_left"] == pytest.approx(200 / 30)
    queue = read(lines, "queue_status")
    assert (queue["in_hand"], queue["pending_left"]) == (300, 200)
    assert read(lines, "claimed_batches")["in_hand"] == 300


def test_no_entry_counts_twice_when_the_verdict_comes_before_the_next_report(lines: Lines) -> None:
    attempt = begin(lines, "a")
    tell(lines, "a", {attempt: 500})
    lines.session.execute("update rowferry.batch_attempt set verdict = 'DONE', finished_at = now()")
    change(lines, "batch_queue", "status = 'DONE', migrated = 500, finished_at = now()")
    assert counts(lines) == (0, 0)
    assert read(lines, "migration_state")["done_share"] == 1


def test_an_open_batch_is_never_shown_as_done(lines: Lines) -> None:
    tell(lines, "a", {begin(lines, "a"): 700})
    assert counts(lines) == (500, 500), "more than the batch has are not believed"
    assert read(lines, "migration_state")["done_share"] == pytest.approx(499 / 500)


def test_entries_that_an_earlier_attempt_has_settled_are_not_counted_again(lines: Lines) -> None:
    change(lines, "batch_queue", "migrated = 450")
    tell(lines, "a", {begin(lines, "a"): 60})
    assert counts(lines) == (50, 50)


def test_what_a_batch_had_that_was_put_back_is_no_longer_counted(lines: Lines) -> None:
    tell(lines, "a", {begin(lines, "a"): 300})
    lines.session.execute("update rowferry.batch_attempt set verdict = 'RELEASED', finished_at = now()")
    assert counts(lines) == (500, 0)


def test_a_dead_worker_lowers_no_percentage_and_raises_no_time_left(lines: Lines) -> None:
    add(lines, "copy", 2000, "DONE")
    change(lines, "batch_queue", "started_at = now() - interval '100 s' where status = 'DONE'")
    tell(lines, "a", {begin(lines, "a"): 300})
    alive = read(lines, "migration_state")
    change(lines, "worker", "last_seen_at = now() - interval '9 s', reported_at = now() - interval '9 s'")
    add_worker(lines, "copy", name="b")
    begin(lines, "b", ago="1 s", verdict="RELEASED")  # unclear whether the first worker is dead: put back
    assert counts(lines) == (500, 300)
    begin(lines, "b", ago="0 s")
    assert counts(lines) == (500, 300)
    after = read(lines, "migration_state")
    assert after["seconds_left"] <= alive["seconds_left"]
    assert after["done_share"] == alive["done_share"] == 2300 / 2500


def test_a_wait_for_a_dead_worker_is_no_slower_pace_and_a_stall_is(lines: Lines) -> None:
    tell(lines, "a", {begin(lines, "a", ago="20 s"): 300})
    change(lines, "worker", "last_seen_at = now() - interval '10 s', reported_at = now() - interval '10 s'")
    assert read(lines, "rates")["rate_10m"] == pytest.approx(30), "300 entries in the 10 s before its death"
    change(lines, "worker", "reported_at = now() - interval '16 s'")
    assert read(lines, "rates")["rate_10m"] == pytest.approx(15), "300 entries in 20 s"


def test_a_batch_that_moves_no_more_has_no_rate(lines: Lines) -> None:
    tell(lines, "a", {begin(lines, "a", ago="5 min"): 300})
    assert read(lines, "rates")["rate_1m"] == pytest.approx(300 / 300), "a fifth of them in the last minute"
    change(lines, "worker", "reported_at = now() - interval '61 s'")
    assert read(lines, "rates")["rate_1m"] is None


def test_a_worker_that_has_stopped_has_nothing_in_hand(lines: Lines) -> None:
    tell(lines, "a", {begin(lines, "a"): 300})
    change(lines, "worker", "last_seen_at = now() - interval '31 s'")
    assert counts(lines) == (500, 300)
    change(lines, "worker", "stopped_at = now()")
    assert counts(lines) == (500, 0)


@pytest.mark.versions
def test_no_commit_waits_for_a_report(lines: Lines) -> None:
    tell(lines, "a", {})
    assert lines.session.execute("show synchronous_commit").fetchall() == [{"synchronous_commit": "off"}]


def test_nobody_reports_for_a_worker_whose_ledger_another_session_holds(lines: Lines, any_database: str) -> None:
    with closing(Lines(any_database)) as other:
        other.session.execute("select pg_advisory_lock(hashtextextended('rowferry.ledger a', 0))")
        with pytest.raises(errors.InsufficientPrivilege):
            tell(lines, "a", {1: 1})
