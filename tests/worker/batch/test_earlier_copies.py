"""What a killed worker has copied is brought up to date where the application rewrites the legacy object meanwhile."""

import asyncio
from typing import Any, cast

import pytest

from rowferry.s3.responses import Response
from rowferry_worker.copying.precedence import Clocks, is_earlier_copy
from rowferry_worker.objects.compare import Pair
from support.entries.entry_table import TO
from support.entries.files import wait_for_next_second
from support.entries.migration import Migration

NEW = b"rewritten in place"
DAY = "Fri, 27 Nov 2026"


def note_killed_attempt(migration: Migration, ago: str) -> None:
    """Leave an open attempt of a worker that nobody knows, as one that was killed has."""
    migration.execute(
        "insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at) "
        "select id, 0, 1, 'killed', now() - %s::interval from rowferry.batch_queue",
        (ago,),
    )
    migration.execute("update rowferry.batch_queue set created_at = now() - interval '1 hour'")


def rewrite(migration: Migration) -> Migration:
    """Give it one entry, whose object was copied, and then rewritten in place."""
    migration.add(1, "me.png", b"as it was copied")
    migration.enqueue()
    migration.production.put(f"{TO}me.png", b"as it was copied")
    wait_for_next_second()
    migration.legacy.put("image/me.png", NEW)
    return migration


@pytest.fixture
def rewritten(any_migration: Migration) -> Migration:
    return rewrite(any_migration)


def check_newest(migration: Migration) -> None:
    assert migration.rows()["1"] == f"{TO}me.png"
    assert migration.production.read(f"{TO}me.png") == NEW


def test_they_arrive_from_the_halves_of_a_batch_that_was_killed_twice(migration: Migration) -> None:
    migration.add(2, "other.png")
    rewrite(migration)
    for _ in range(2):
        note_killed_attempt(migration, "1 minute")
    migration.work()
    assert len(migration.batches()) == 3
    check_newest(migration)


@pytest.mark.parametrize("by_hand", [False, True], ids=["after its death", "put back by hand"])
def test_the_newest_bytes_arrive_after_a_worker_was_killed(rewritten: Migration, *, by_hand: bool) -> None:
    note_killed_attempt(rewritten, "1 minute")
    if by_hand:
        rewritten.execute("update rowferry.batch_queue set status = 'ERROR', failed = 1")
        rewritten.requeue()
    rewritten.work()
    check_newest(rewritten)


def test_what_stood_there_before_the_first_attempt_is_not_its_copy(rewritten: Migration) -> None:
    note_killed_attempt(rewritten, "0 seconds")
    assert rewritten.work() == {"conflict": 1}
    assert rewritten.rows() == {"1": "image/me.png"}
    assert rewritten.production.read(f"{TO}me.png") == b"as it was copied"
    rewritten.requeue()
    assert rewritten.work() == {"conflict": 1}


def test_a_first_attempt_has_copied_nothing(rewritten: Migration) -> None:
    assert rewritten.work() == {"conflict": 1}


def test_what_is_newer_than_the_legacy_object_stays(migration: Migration) -> None:
    """The two servers' clocks are one."""
    rewritten = rewrite(migration)
    wait_for_next_second()
    rewritten.production.put(f"{TO}me.png", b"of somebody else")
    note_killed_attempt(rewritten, "1 minute")
    assert rewritten.work() == {"conflict": 1}
    assert rewritten.production.read(f"{TO}me.png") == b"of somebody else"


@pytest.mark.parametrize(
    ("written", "tried_for", "is_ours"),
    [("12:00:00", None, False), ("12:00:00", 6.9, False), ("12:00:00", 7.0, True), ("12:00:06", 0.9, False)],
)
def test_an_age_may_be_two_seconds_more_than_is_told(written: str, tried_for: float | None, is_ours: bool) -> None:
    """A server's clock is cut to seconds, and some round the time of writing up: it may even lie ahead."""
    times = {"legacy": "12:00:07", "production": written}
    of = {side: {"date": f"{DAY} 12:00:05 GMT", "last-modified": f"{DAY} {time} GMT"} for side, time in times.items()}
    pair = Pair("a", Response(200, of["legacy"], b""), "b", Response(200, of["production"], b""))
    assert asyncio.run(is_earlier_copy(cast("Any", None), pair, Clocks(), tried_for)) == is_ours
