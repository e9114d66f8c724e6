"""What a run says of workers that die: whose batch waits, how long, and who goes on with it; and its pace meanwhile."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from rowferry.db.connection import connect
from rowferry.reports.progress import Counts
from rowferry_cli.migrate.lost_workers import LostWorkers
from rowferry_cli.throughput import Throughput
from rowferry_queues.migrate.spec import MIGRATE
from rowferry_worker.monitoring.kernel import tells_ends
from rowferry_worker.service import name_host
from support.queue.lines import Lines
from support.queue.rows import add, change

linux_alone = pytest.mark.skipif(not tells_ends(), reason="this kernel does not say that a process has ended")
WORKER = """
insert into rowferry.worker (id, host, pid, version, batches, in_flight_limit, queues, last_seen_at, in_hand)
values (%(id)s, %(host)s, %(pid)s, '1', 0, 16, '{migrate}', now() - %(silent)s::interval, %(in_hand)s)
"""
ATTEMPT = """
insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id)
select max(q.id), 0, 1, %(id)s from rowferry.batch_queue as q returning id, batch_id
"""


@pytest.fixture
def lines(database: str) -> Iterator[Lines]:
    """A migration with one batch of 500 entries."""
    with closing(Lines(database)) as lines:
        lines.register("m")
        add(lines, "migrate", 500)
        yield lines


@pytest.fixture
def lost(lines: Lines) -> Iterator[LostWorkers]:
    del lines  # DATABASE_URL
    with closing(connect("test", autocommit=True)) as connection:
        yield LostWorkers(connection, "m")


def begin(lines: Lines, worker: str, pid: int, *, silent: str = "0 s", host: str = "far") -> None:
    """Let a worker begin with the batch and settle 20 entries of it."""
    told = {"id": worker, "host": host, "pid": pid, "silent": silent, "in_hand": "{}"}
    lines.session.execute(WORKER, told)
    (attempt,) = lines.session.execute(ATTEMPT, told)
    change(lines, "worker", f"in_hand = '{{\"{attempt['id']}\": 20}}' where id = '{worker}'")


def test_a_worker_that_falls_silent_is_told_once_with_its_batch_and_the_wait(lines: Lines, lost: LostWorkers) -> None:
    begin(lines, "a", 7)
    assert list(lost.look(())) == []
    assert not lost.waits
    change(lines, "worker", "last_seen_at = now() - interval '8 s'")
    assert list(lost.look(())) == [
        "Worker process 7 on far was lost in the middle of batch 1 (20 of 500 entries done). Another one takes over as "
        "soon as it has been silent for 10 s."
    ]
    assert re.fullmatch("batch 1 waits [12] s more for a lost worker", lost.waits)
    assert list(lost.look(())) == []


HERE = "Worker process 7 was lost in the middle of batch 1 (20 of 500 entries done). Another one takes over."
FOLLOWED = "Batch 1 was taken over by process 8: what process 7 had copied is found again."


@linux_alone
def test_a_process_of_this_host_is_known_to_be_dead_at_once(lines: Lines, lost: LostWorkers) -> None:
    begin(lines, "a", 7, host=name_host())
    assert list(lost.look({7})) == [HERE]
    assert lost.waits == "batch 1 waits to be claimed again"


def test_a_process_of_this_host_that_is_silent_is_waited_for(lines: Lines, lost: LostWorkers) -> None:
    begin(lines, "a", 7, host=name_host(), silent="8 s")
    (words,) = lost.look(())
    assert words.endswith("Another one takes over as soon as it has been silent for 10 s.")
    assert re.fullmatch("batch 1 waits [12] s more for a lost worker", lost.waits)


@linux_alone
@pytest.mark.parametrize("is_known_late", [False, True])
def test_a_batch_that_was_taken_over_between_two_looks_is_told_too(
    lines: Lines, lost: LostWorkers, *, is_known_late: bool
) -> None:
    begin(lines, "a", 7, host=name_host())
    assert list(lost.look(())) == []
    begin(lines, "b", 8, host=name_host())
    if is_known_late:
        assert list(lost.look(())) == []
    assert list(lost.look({7})) == [HERE, FOLLOWED]
    assert list(lost.look({7})) == []


@linux_alone
def test_nothing_is_told_twice_where_the_next_worker_has_to_begin_anew(lines: Lines, lost: LostWorkers) -> None:
    begin(lines, "a", 7, host=name_host())
    assert list(lost.look({7})) == [HERE]
    begin(lines, "b", 8, host=name_host())
    assert list(lost.look({7})) == [FOLLOWED]
    change(lines, "batch_attempt", "verdict = 'RELEASED', finished_at = now() where worker_id = 'b'")
    assert list(lost.look({7})) == []
    begin(lines, "c", 9, host=name_host())
    assert list(lost.look({7})) == []


def test_a_process_of_another_host_with_the_same_number_lives(lines: Lines, lost: LostWorkers) -> None:
    begin(lines, "a", 7)
    assert list(lost.look({7})) == []


def test_who_takes_a_batch_over_is_told(lines: Lines, lost: LostWorkers) -> None:
    begin(lines, "a", 7, silent="11 s")
    assert len(list(lost.look(()))) == 1
    assert lost.waits == "batch 1 waits to be claimed again"
    begin(lines, "b", 8)
    assert list(lost.look(())) == ["Batch 1 was taken over by process 8: what process 7 had copied is found again."]
    assert not lost.waits


def test_a_worker_that_was_only_cut_off_responds_again(lines: Lines, lost: LostWorkers) -> None:
    begin(lines, "a", 7, silent="8 s")
    assert len(list(lost.look(()))) == 1
    change(lines, "worker", "last_seen_at = now()")
    assert list(lost.look(())) == ["Worker process 7 responds again, and goes on with batch 1."]


def test_a_moving_migration_has_a_pace_before_its_first_batch_ends_and_is_not_at_its_end_while_one_is_open() -> None:
    counts = Counts(batches=2, batches_init=2, entries=1000, waiting=1000, in_hand=3)
    line = str(Throughput(counts, timedelta(seconds=10), MIGRATE.words, "migrate"))
    assert "3 more in open batches" in line
    assert "0.3 entries/s" in line
    none = str(Throughput(Counts(entries=1000, waiting=1000), timedelta(seconds=10), MIGRATE.words, "migrate"))
    assert "entries/s" not in none, "it has not begun yet"
    counts = Counts(batches=1, batches_init=1, entries=500, waiting=500, in_hand=500)
    assert Throughput(counts, timedelta(seconds=1), MIGRATE.words, "migrate").counts.percent == 99
