"""An application that rewrites objects in place, beside a batch: the newest bytes arrive, or the entry is named."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from rowferry_queues.migrate import perform as queue
from rowferry_worker.batch import second_look
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.second_look import FOLLOWED
from support.entries.files import make_table, now
from support.entries.migration import Migration
from support.postgres.lock_holders import work_while_locked
from support.s3.request_log import LoggedRequest, RequestLog

pytestmark = pytest.mark.usefixtures("no_pauses")

KEY = "image/u2/me.png"


@pytest.fixture
def three(migration: Migration) -> Migration:
    """A migration of three entries in one batch, which may be tried twice."""
    migration.plan["migration"]["max_attempts"] = 2
    return migration.given(3)


def looks_of(migration: Migration) -> Callable[[LoggedRequest], bool]:
    """Return what matches a look at the legacy object, which is copied without a HEAD."""
    bucket = migration.plan["legacy"]["bucket"]
    return lambda seen: (seen.method, seen.bucket, seen.key) == ("HEAD", bucket, KEY)


@pytest.fixture
def read_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copies of a batch take so long that each is looked at again."""
    monkeypatch.setattr(second_look, "FRESH_FOR", timedelta(0))


@contextmanager
def rewriting(
    migration: Migration, log: RequestLog, most: int, also: Callable[[LoggedRequest], object] = lambda _seen: None
) -> Iterator[Callable[[], int]]:
    """Rewrite an object right before it is looked at, so often at most; yield how often that was done."""
    times, is_look = 0, looks_of(migration)

    def rewrite(seen: LoggedRequest) -> None:
        nonlocal times
        also(seen)
        if is_look(seen) and times < most:
            times += 1
            migration.bodies["2"] = b"version %d" % times
            migration.legacy.put(KEY, migration.bodies["2"])

    with log.telling(rewrite):
        yield lambda: times


@pytest.mark.usefixtures("read_long_ago")
@pytest.mark.parametrize("transfer", ["auto", "stream"])
@pytest.mark.parametrize("most", [1, FOLLOWED])
def test_a_row_moves_to_the_newest_bytes(three: Migration, log: RequestLog, transfer: str, most: int) -> None:
    three.plan["migration"]["transfer"] = transfer
    three.enqueue()
    with rewriting(three, log, most) as times:
        three.work()
    assert times() == most
    assert three.verdicts() == ["DONE"]
    assert three.counts() == {"migrated": 3}
    three.audit()


@pytest.mark.usefixtures("read_long_ago")
@pytest.mark.parametrize("is_refused", [False, True])
def test_what_is_rewritten_while_another_is_copied_again_is_not_missed(
    three: Migration, log: RequestLog, is_refused: bool
) -> None:
    """It was looked at before that, and its row has not moved yet, whether or not the other can be copied again."""

    def rewrite_other(seen: LoggedRequest) -> bool:
        copies = [each for each in log.seen if each.writes_object and each.key == "avatar/u2/me.png"]
        is_again = seen.writes_object and seen.key == "avatar/u2/me.png" and len(copies) == 2
        if is_again and three.bodies["1"] != b"late":
            three.bodies["1"] = b"late"
            three.legacy.put("image/u1/me.png", b"late")
        return is_again and is_refused

    with rewriting(three, log, 1), log.refusing(rewrite_other, 400, "InvalidRequest"):
        three.work(parallel=1)
    assert three.bodies["1"] == b"late"
    assert three.counts() == ({"migrated": 2, "failed": 1} if is_refused else {"migrated": 3})
    three.audit(legacy_left=[2] if is_refused else [])


@pytest.mark.usefixtures("read_long_ago")
@pytest.mark.must("objects that the application changes")
def test_what_is_rewritten_while_rows_wait_for_their_turn_is_not_missed(
    three: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`max_rows_per_second` may hold a batch back for tens of seconds."""

    def rewrite_meanwhile(_context: BatchContext, rows: int) -> None:
        assert rows == 3
        three.bodies["2"] = b"written while rows waited"
        three.legacy.put(KEY, three.bodies["2"])

    monkeypatch.setattr(queue, "wait_for_turn", rewrite_meanwhile)
    assert three.work() == {"migrated": 3}
    three.audit()


def test_what_is_rewritten_by_the_transaction_that_a_row_waits_for_is_not_missed(three: Migration) -> None:
    """The application locks a row, writes its object, and commits; the row's update has to wait for that."""
    with work_while_locked(three, "update public.avatars set path = path where id = 2") as application:
        three.bodies["2"] = b"written under a lock"
        three.legacy.put(KEY, three.bodies["2"])
        application.commit()
    assert three.verdicts() == ["DONE"]
    assert three.counts() == {"migrated": 3}
    three.audit()


@pytest.mark.parametrize(
    "case", [({}, 1.5, 0), ({}, 2.1, 1), ({"rewritten": True}, 0.0, 1), ({"immutable": True}, 60.0, 0)]
)
def test_what_was_copied_more_than_2_s_before_its_row_moves_is_looked_at_again(
    three: Migration, log: RequestLog, monkeypatch: pytest.MonkeyPatch, case: tuple[dict[str, Any], float, int]
) -> None:
    """Unless the plan says that each object shall be, or that none has to be."""
    legacy, seconds_later, looks = case
    three.plan["legacy"] |= legacy
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + seconds_later)
    monkeypatch.setattr(second_look, "time", clock)
    assert three.migrate() == {"migrated": 3}
    assert sum(map(looks_of(three), log.seen)) == looks


@pytest.mark.usefixtures("read_long_ago")
def test_an_object_that_never_rests_stays_where_it_is_and_is_named(three: Migration, log: RequestLog) -> None:
    """What was copied of it is no other's object: a later attempt, of whatever worker, writes over it."""
    with rewriting(three, log, 1000):
        three.work()
        three.work_again()
    assert three.verdicts() == ["RETRY", "ERROR"]
    assert three.counts() == {"migrated": 2, "failed": 1}
    assert "is rewritten faster than it can be copied" in three.failures()[0]["error"]
    three.audit(legacy_left=[2])
    three.execute("select rowferry.requeue()")
    assert three.work() == {"migrated": 3}
    three.audit()


@pytest.mark.usefixtures("read_long_ago")
def test_an_object_that_cannot_be_looked_at_again_does_not_lead_its_row(three: Migration, log: RequestLog) -> None:
    with log.refusing(looks_of(three), 500, "InternalError"):
        three.work()
    assert three.counts()["migrated"] == 2
    three.audit(legacy_left=[2])


@pytest.mark.usefixtures("read_long_ago")
def test_rows_that_stay_get_the_newest_bytes_in_the_same_pass(migration: Migration, log: RequestLog) -> None:
    staying = make_table(migration, "timestamptz")
    staying.execute("insert into public.files values (2, %s, %s)", (KEY, now()))
    staying.legacy.put(KEY, b"version 0")
    staying.enqueue()
    with rewriting(staying, log, FOLLOWED) as times:
        staying.work()
    assert times() == FOLLOWED
    assert staying.counts() == {"migrated": 1}
    assert staying.production.read(KEY) == staying.bodies["2"]
