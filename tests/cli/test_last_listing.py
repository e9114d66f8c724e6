"""What an application rewrites behind its copy is found at the end of the run, and repaired or named."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from rowferry.s3.listings.keys import ListedObject
from rowferry_cli.migrate import last_listing
from rowferry_cli.migrate.passes import Run
from rowferry_cli.throughput import Throughput
from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration
from support.processes.processes import wait_for

RunAndWrite = Callable[..., tuple[int, str]]
KEY, NEW_KEY = f"{FROM}u2/me.png", f"{TO}u2/me.png"


@pytest.fixture
def run_and_write(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> RunAndWrite:
    """`rowferry migrate` of three rows, and an application that writes once the last row has moved."""
    migration.fill(3).write_plan()
    all_passes = Run.all_passes

    def run(write: Callable[[], object], *more: str) -> tuple[int, str]:
        def pass_and_write(self: Run) -> list[Throughput]:
            done = all_passes(self)
            write()
            return done

        monkeypatch.setattr(Run, "all_passes", pass_and_write)
        done = migration.run_here("migrate", "--yes", "--processes", "1", "--log-file", "it.log", *more)
        return done.returncode, done.stdout + done.stderr

    return run


def test_an_object_rewritten_in_the_last_moment_is_found_and_repaired(
    migration: Migration, run_and_write: RunAndWrite
) -> None:
    """... once the times tell that it was: they are in seconds."""

    def is_later() -> bool:
        migration.legacy.put(KEY, b"written last")
        copied, written = migration.production.head(NEW_KEY), migration.legacy.head(KEY)
        return written["LastModified"] - copied["LastModified"] >= timedelta(seconds=2)

    status, words = run_and_write(lambda: wait_for(is_later))
    assert (status, migration.production.read(NEW_KEY)) == (0, b"written last"), words
    assert "1 legacy object of public.avatars.path may have been rewritten" in words
    verified = [batch for batch in migration.batches() if batch["queue_name"] == "verify"]
    assert [(batch["status"], batch["entry_count"], batch["migrated"]) for batch in verified] == [("DONE", 1, 1)]


def test_what_the_application_has_written_to_production_since_wins(
    migration: Migration, run_and_write: RunAndWrite
) -> None:
    def write() -> None:
        migration.legacy.put(KEY, b"to the old place")
        migration.production.put(NEW_KEY, b"to the new one")

    status, words = run_and_write(write)
    assert migration.production.read(NEW_KEY) == b"to the new one", words
    assert (status, "1 object not repaired" in words) == (1, True)


def test_nothing_more_is_sent_to_the_queue_where_nothing_was_rewritten(
    migration: Migration, run_and_write: RunAndWrite
) -> None:
    status, words = run_and_write(partial(migration.legacy.put, f"{FROM}of/nobody.png", b"no row names it"))
    assert status == 0
    assert {batch["queue_name"] for batch in migration.batches()} == {"migrate"}
    assert "rewritten" not in words


@pytest.mark.parametrize(
    "case",
    [
        ("MOST_COMPARED", 0, "more than 0 objects were written during the run"),
        ("MOST_PAGES", 0, "there are more than 0"),
        ("read_date", lambda _headers: None, "the legacy server did not tell the time"),
    ],
)
def test_where_a_listing_cannot_tell_the_run_says_what_remains(
    case: tuple[str, object, str], migration: Migration, run_and_write: RunAndWrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, value, why = case
    monkeypatch.setattr(last_listing, name, value)
    status, words = run_and_write(partial(migration.legacy.put, KEY, b"written last"))
    assert status == 0
    assert f"{why}): `rowferry verify --repair` finds them" in " ".join(words.split())


def test_a_listing_without_times_tells_nothing() -> None:
    with pytest.raises(last_listing._Unknown):
        last_listing._read_time(ListedObject("a", "1", "etag", ""))


def test_nothing_is_listed_of_objects_that_never_change(
    migration: Migration, run_and_write: RunAndWrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration.plan["legacy"]["immutable"] = True
    migration.write_plan()
    monkeypatch.setattr(last_listing, "Walk", None)
    assert run_and_write(lambda: None)[0] == 0


def test_nothing_is_repaired_where_different_objects_were_to_be_kept(
    migration: Migration, run_and_write: RunAndWrite
) -> None:
    migration.production.put(NEW_KEY, b"of somebody else")
    status, words = run_and_write(lambda: migration.legacy.put(KEY, b"written last"), "--on-conflict", "keep")
    assert (status, migration.production.read(NEW_KEY)) == (0, b"of somebody else"), words
    assert "different objects in production were to be kept" in words
