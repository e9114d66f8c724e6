"""An application that works in a folder while it is copied: its row moves with everything that is in it by then."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from support.entries.migration import Migration
from support.entries.runs import LEGACY, Runs
from support.postgres.lock_holders import work_while_locked
from support.s3.request_log import LoggedRequest, RequestLog


@pytest.fixture
def runs(migration: Migration) -> Runs:
    migration.plan["migration"]["max_attempts"] = 2
    return Runs(migration)


@contextmanager
def at_writes(log: RequestLog, act: Callable[[int], None]) -> Iterator[None]:
    """Act right before each write of an object, told its number."""
    seen: list[LoggedRequest] = []

    def listen(request: LoggedRequest) -> None:
        if request.writes_object:
            seen.append(request)
            act(len(seen))

    with log.telling(listen):
        yield


@pytest.mark.parametrize("transfer", ["server", "stream"])
def test_what_is_added_while_a_folder_is_copied_is_copied_too(runs: Runs, log: RequestLog, transfer: str) -> None:
    runs.migration.plan["migration"]["transfer"] = transfer
    runs.add("a", ["m", "z"])

    def add(number: int) -> None:
        if number == 1:
            runs.put("a", "added first", b"by the application")
        if number == 3:
            runs.put("a", "added last", b"by the application")

    with at_writes(log, add):
        runs.migration.migrate()
    assert set(runs.bodies["a"]) == {"m", "z", "added first", "added last"}
    assert runs.migration.counts() == {"migrated": 1}
    runs.audit()


@pytest.mark.parametrize("transfer", ["server", "stream"])
def test_what_is_rewritten_while_a_folder_is_copied_arrives_in_its_newest_bytes(
    runs: Runs, log: RequestLog, transfer: str
) -> None:
    runs.migration.plan["migration"]["transfer"] = transfer
    """It is rewritten when the other object is written, and when it is copied again."""
    runs.add("a", ["m", "n"])
    rewritten: list[int] = []

    def rewrite(number: int) -> None:
        name = next(seen.key for seen in reversed(log.seen) if seen.writes_object)[-1]
        if (name == "n" and not rewritten) or (name == "m" and len(rewritten) == 1):
            rewritten.append(number)
            runs.put("a", "m", b"version %d" % number)

    with at_writes(log, rewrite):
        runs.migration.migrate(parallel=1)
    assert len(rewritten) == 2
    assert runs.migration.counts() == {"migrated": 1}
    runs.audit()


def test_what_is_deleted_while_a_folder_is_copied_is_not_missing(runs: Runs, log: RequestLog) -> None:
    runs.add("a", ["m", "n", "o"])

    def delete(number: int) -> None:
        if number == 1:
            for name in ("n", "o"):
                runs.migration.legacy.delete(f"0/a/artifacts/{name}")
                runs.bodies["a"].pop(name, None)

    with at_writes(log, delete):
        assert runs.migration.migrate(parallel=1) == {"migrated": 1}
    runs.audit()


def test_a_folder_that_never_rests_is_named_and_moves_once_it_does(runs: Runs, log: RequestLog) -> None:
    runs.add("a", ["m"])
    runs.add("b", ["m"])
    with at_writes(log, lambda number: runs.put("a", f"added {number}", b"more")):
        runs.migration.migrate()
        runs.migration.work_again()
    assert runs.migration.verdicts() == ["RETRY", "ERROR"]
    assert runs.migration.counts() == {"migrated": 1, "failed": 1}
    assert "its folder changes faster than it can be copied" in runs.migration.failure_of("a")[2]
    runs.audit(left=["a"])
    runs.migration.execute("select rowferry.requeue()")
    assert runs.migration.work() == {"migrated": 2}
    runs.audit()


def test_what_the_transaction_adds_that_holds_the_row_is_copied_too(runs: Runs) -> None:
    runs.add("a", ["m"])
    migration = runs.migration
    migration.enqueue()
    with work_while_locked(migration, "select from public.runs for update") as application:
        runs.put("a", "n", b"written under a lock")
        application.commit()
    assert migration.counts() == {"migrated": 1}
    runs.audit()


def test_a_row_that_the_application_has_changed_keeps_its_text(runs: Runs, log: RequestLog) -> None:
    runs.add("a", ["m"])
    query = f"update public.runs set artifact_uri = '{LEGACY}0/elsewhere'".encode()

    def change(_number: int) -> None:
        with psycopg.connect(runs.migration.dsn) as application:
            application.execute(query)

    with at_writes(log, change):
        assert runs.migration.migrate() == {"changed": 1}
    assert runs.places() == {"a": f"{LEGACY}0/elsewhere"}
