"""What objects have in common is the objects': they fail by name, whatever their order, and no side is blamed."""

import itertools
from collections.abc import Callable, Iterable

import pytest

from support.entries.migration import Migration
from support.processes.worker_process import eventually
from support.queue.at_work import at_work
from support.queue.paused_migration import state_of
from support.s3.request_log import LoggedRequest, RequestLog, s3_error, writes_of

pytestmark = pytest.mark.usefixtures("no_pauses")

Matches = Callable[[LoggedRequest], bool]
PAGE = b"HTTP/1.1 413 Too Large\r\nContent-Length: 6\r\n\r\n<html>"
NO_LENGTH = b'HTTP/1.1 200 OK\r\nETag: "a"\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n'
LARGE = b"x" * 5000


DENIED, FAILED = s3_error(403, "AccessDenied"), s3_error(500, "InternalError")


def names(seen: LoggedRequest, numbers: Iterable[int]) -> bool:
    """Return whether a request names one of these objects, as its key or as what it copies."""
    folders = f"{seen.path}/{seen.headers.get('x-amz-copy-source', '')}".split("/")
    return any(f"u{number}" in folders for number in numbers)


def reads(seen: LoggedRequest) -> bool:
    return seen.method in {"GET", "HEAD"} or "x-amz-copy-source" in seen.headers


def check_blamed(migration: Migration, bad: range) -> None:
    """See that these entries alone failed, by name, and that no batch was put back for them."""
    assert state_of(migration) == (False, "")
    assert {failure["entry_id"] for failure in migration.failures()} == {str(number) for number in bad}
    assert {failure["outcome"] for failure in migration.failures()} == {"failed"}
    assert "INIT" not in migration.statuses()
    migration.audit(legacy_left=bad)


KINDS: dict[str, tuple[str, Callable[[LoggedRequest, range], bool], bytes]] = {
    "denied, copied": ("server", lambda seen, bad: reads(seen) and names(seen, bad), DENIED),
    "denied, streamed": ("stream", lambda seen, bad: reads(seen) and names(seen, bad), DENIED),
    "not writable": ("stream", lambda seen, bad: seen.writes and names(seen, bad), DENIED),
    "not writable, copied": ("server", lambda seen, bad: seen.writes_object and names(seen, bad), DENIED),
    "too large": (
        "stream",
        lambda seen, _: seen.method == "PUT" and int(seen.headers.get("content-length", 0)) > 1000,
        PAGE,
    ),
    "without length": ("stream", lambda seen, bad: reads(seen) and names(seen, bad), NO_LENGTH),
    "unreadable": ("stream", lambda seen, bad: seen.method == "GET" and names(seen, bad), FAILED),
    "unreadable, copied": ("server", lambda seen, bad: reads(seen) and names(seen, bad), FAILED),
}
"""How objects are copied, which requests are answered otherwise for some of them, and how."""


def given_kind(kind: str, migration: Migration, bad: range) -> tuple[Matches, bytes]:
    transfer, matches, answer = KINDS[kind]
    migration.plan["migration"] |= {"transfer": transfer, "max_attempts": 1}
    for number in bad:
        migration.add(number, f"u{number}/me.png", LARGE)
    return lambda seen: matches(seen, bad), answer


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("kind", KINDS)
def test_objects_that_fail_alike_fail_by_name_and_the_others_move(
    kind: str, first: bool, migration: Migration, log: RequestLog
) -> None:
    bad, good = (range(1, 9), range(9, 17)) if first else (range(9, 17), range(1, 9))
    matches, answer = given_kind(kind, migration, bad)
    migration.given(len(good), 2, start=good.start)
    with log.answering(matches, answer):
        migration.work()
        migration.work_again(times=2)
    check_blamed(migration, bad)
    assert migration.counts() == {"migrated": 8, "failed": 8}


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_finds_nothing_else_to_do_asks_for_what_another_has_moved(
    kind: str, migration: Migration, log: RequestLog
) -> None:
    migration.given(1).work()
    bad = range(2, 10)
    matches, answer = given_kind(kind, migration, bad)
    migration.enqueue(2)
    with log.answering(matches, answer):
        migration.work_again(times=3)  # a process each
    check_blamed(migration, bad)


@pytest.mark.parametrize("kind", ["denied, streamed", "too large", "unreadable"])
def test_many_alike_in_one_batch_hold_up_nothing_behind_them(kind: str, migration: Migration, log: RequestLog) -> None:
    bad = range(1, 31)
    matches, answer = given_kind(kind, migration, bad)
    migration.given(10, 100, start=31)
    with log.answering(matches, answer):
        migration.work(parallel=1)
        migration.work_again(times=2)
    check_blamed(migration, bad)
    assert len(migration.attempts()) <= 4


def test_what_is_recorded_and_gone_gives_way_to_what_succeeds(migration: Migration, log: RequestLog) -> None:
    migration.given(1).work()
    migration.legacy.delete("image/u1/me.png")
    bad = range(2, 10)
    matches, answer = given_kind("denied, streamed", migration, bad)
    migration.given(2, 2, start=10)
    with log.answering(matches, answer):
        migration.work()
        migration.work_again()
    check_blamed(migration, bad)
    keys = migration.execute("select key from rowferry.server_fact where fact = 'legacy object can be read'")
    assert keys[0]["key"] in {"image/u10/me.png", "image/u11/me.png"}


@pytest.mark.parametrize("kind", ["denied, copied", "unreadable"])
def test_what_another_worker_has_learned_since_counts_as_well(kind: str, migration: Migration, log: RequestLog) -> None:
    """It has moved all that could, so that each entry left is like the others."""
    bad, hours = range(1, 17), itertools.count(0, 3600)
    matches, answer = given_kind(kind, migration, bad)
    migration.enqueue(4)
    with log.answering(matches, answer), at_work(clock=lambda: next(hours)) as take_turn:
        take_turn()
        assert set(migration.verdicts()) == {"RELEASED"}, "nothing else is known yet"
        migration.execute("update rowferry.batch_queue set run_after = now() + interval '1 week'")
        migration.given(1, 4, start=17)
        with migration.workers(1, "--until-empty") as (worker,):
            worker.wait()
        migration.make_due()
        for _ in range(4):
            take_turn()
    check_blamed(migration, bad)


def test_batches_that_fail_alike_pause_nothing_while_others_are_on_their_way(
    migration: Migration, log: RequestLog
) -> None:
    """Their production keys may not be asked for, and the objects of others are not there yet."""
    good, bad = range(1, 5), range(5, 17)
    matches, answer = given_kind("denied, copied", migration, bad)
    migration.given(len(good), 4, start=good.start)
    with log.answering(matches, answer), migration.workers(1, "--until-empty") as (worker,):
        with log.holding(writes_of(good)):
            eventually(lambda: migration.verdicts().count("RELEASED") >= 3)
        worker.wait()
    check_blamed(migration, bad)


def test_what_a_check_has_read_shows_that_the_side_is_well(migration: Migration, log: RequestLog) -> None:
    bad = range(2, 10)
    matches, answer = given_kind("denied, streamed", migration, bad)
    migration.fill(1).write_plan()
    with log.answering(matches, answer):
        migration.run_here("check")
        migration.execute("delete from public.avatars where id = '1'")
        migration.enqueue(2)
        migration.work_again(times=3)
    check_blamed(migration, bad)


def test_a_folder_alone_may_be_written_and_the_rest_fails_by_name(migration: Migration, log: RequestLog) -> None:
    """Not even the key without an object, which questions are about, may be written."""
    bad, good = range(1, 9), range(9, 17)
    migration.plan["migration"]["transfer"] = "server"
    migration.given(16, 2)
    with log.answering(lambda seen: seen.writes and bool(seen.key) and not names(seen, good), DENIED):
        migration.work()
    check_blamed(migration, bad)


def writes_bytes(seen: LoggedRequest) -> bool:
    """Return whether it would write an object of a row, or a part: not what a server refuses before it writes."""
    return seen.method == "PUT" and (seen.key.startswith("avatar/") or "partNumber" in seen.query)


@pytest.mark.parametrize("transfer", ["server", "stream"])
def test_writes_that_fail_for_all_objects_are_the_sides_though_uploads_begin(
    transfer: str, migration: Migration, log: RequestLog
) -> None:
    migration.plan["migration"] |= {"transfer": transfer, "max_attempts": 1}
    migration.given(2).work()
    migration.given(4, 4, start=3)
    with log.refusing(writes_bytes, 500, "InternalError"):
        migration.work_again()
    assert set(migration.verdicts()) == {"DONE", "RELEASED"}
    assert state_of(migration) == (False, "")
    assert migration.work_again() == {"migrated": 6}
    migration.audit()
