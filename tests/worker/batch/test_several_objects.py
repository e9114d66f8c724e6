"""Entries with several objects: the worst outcome is the entry's, the object at fault is named, and counts balance."""

import json
import time
from typing import Any

import pytest

from rowferry.batch import Entry, Outcome
from rowferry.errors import AccessDenied, NotStarted, ObjectConflict, ObjectNotFound, ObjectRejected
from rowferry.formatting import shorten
from rowferry.keys import ObjectKeys, StandingObject
from rowferry.plan import ObjectPrefix
from rowferry_queues.migrate.perform import choose_moves
from rowferry_queues.verify.perform import ObjectNowhere
from rowferry_worker.batch.objects import Judge, MappedRow
from rowferry_worker.batch.ranges import map_row
from rowferry_worker.copying.copy import CopyResult
from support.entries.entry_table import keyed
from support.entries.migration import Migration
from support.queue.at_work import take_one_turn
from support.queue.queue_runs import outcomes, verify

STANDS, STOOD, DIFFERS = CopyResult(Outcome.MIGRATED, 5), CopyResult(Outcome.KEPT), CopyResult(Outcome.CONFLICT)
GONE, DENIED = ObjectNotFound("NoSuchKey", "no such key"), AccessDenied("AccessDenied", "no")
REFUSED = ObjectConflict("Differs", "it differs")


def row(row_id: str, *keys: str) -> MappedRow:
    """Return a row; a key that ends with `?` is optional."""
    objects = tuple(ObjectKeys(key.rstrip("?"), f"new/{key.rstrip('?')}", not key.endswith("?")) for key in keys)
    return MappedRow(Entry(row_id, "text"), objects, "text")


def production_row(row_id: str, *keys: str) -> MappedRow:
    """Return a row that stays what it is; a key that ends with `?` is optional."""
    objects = tuple(StandingObject(key.rstrip("?"), None, not key.endswith("?")) for key in keys)
    return MappedRow(Entry(row_id, "text"), objects)


@pytest.mark.parametrize(
    ("keys", "results", "outcome", "named"),
    [
        (["a", "b"], {"a": GONE, "b": DENIED}, "failed", "b"),
        (["a", "b"], {"a": DIFFERS, "b": GONE}, "missing", "b"),
        (["a", "b"], {"a": STANDS, "b": DIFFERS}, "conflict", "b"),
        (["a", "b?"], {"a": GONE, "b": DENIED}, "failed", "b"),
        (["a", "b?"], {"a": STANDS, "b": DIFFERS}, "conflict", "b"),
        (["a", "b"], {"a": REFUSED, "b": GONE}, "missing", "b"),
        (["a", "b"], {"a": REFUSED, "b": DENIED}, "failed", "b"),
        (["a", "b?"], {"a": STANDS, "b": REFUSED}, "conflict", "b"),
    ],
)
def test_the_worst_object_is_that_of_the_entry_and_is_named(
    keys: list[str], results: dict[str, Any], outcome: str, named: str
) -> None:
    """Of a row that moves, and of one that does not."""
    moves, (left,) = choose_moves([row("1", *keys)], Judge(results))
    stays = Judge(results, "production").judge(production_row("1", *keys))
    assert (moves, left.outcome, stays.outcome) == ([], outcome, outcome)
    for each in (left, stays):
        assert each.error.startswith(f"{named!r}: ")
    assert named not in left.reason.split()  # equal for equal causes


def test_a_shared_object_counts_for_the_first_row_that_moves() -> None:
    rows = [row("1", "shared", "gone"), row("2", "own", "shared"), row("3", "shared"), row("4", "shared", "kept")]
    moves, (left,) = choose_moves(rows, Judge({"shared": STANDS, "own": STANDS, "gone": GONE, "kept": STOOD}))
    assert left.outcome is Outcome.MISSING
    counted = [(move.entry.id, move.outcome, move.size_bytes) for move in moves]
    assert counted == [("2", "migrated", 10), ("3", "kept", 0), ("4", "kept", 0)]


def test_a_repair_counts_for_the_first_row_whose_objects_all_stand() -> None:
    judge = Judge({"shared": STANDS, "gone": GONE}, "production")
    rows = [
        production_row("1", "shared", "gone"),
        production_row("2", "shared"),
        production_row("3", "shared", "gone?"),
    ]
    found = [(each.outcome, each.size_bytes) for each in map(judge.judge, rows)]
    assert found == [(Outcome.MISSING, 0), (Outcome.MIGRATED, 5), (Outcome.KEPT, 0)]


def test_an_optional_object_is_excused_by_the_error_that_says_so() -> None:
    lost = ObjectNotFound("NoProductionObject", "it stands in legacy")
    nowhere = ObjectNowhere("NoSuchKey", "it stands in neither")
    judge = Judge({"a": STANDS, "lost": lost, "nowhere": nowhere}, "production", excused=ObjectNowhere)
    assert judge.judge(production_row("1", "a", "nowhere?")).outcome is Outcome.MIGRATED
    assert judge.judge(production_row("2", "a", "lost?")).outcome is Outcome.MISSING
    assert judge.judge(production_row("3", "a", "nowhere")).outcome is Outcome.MISSING


def test_a_listed_key_without_the_prefix_says_why_it_has_no_production_key() -> None:
    fault = map_row(Entry("1", "elsewhere/a"), ObjectPrefix("docs/", to="files/")).fault
    assert str(fault) == "KeyCannotBeMapped: its object 'elsewhere/a' does not begin with 'docs/'"


def test_a_row_is_started_when_all_its_objects_are() -> None:
    not_yet = NotStarted("NotStarted", "the time budget ended")
    assert not Judge({"a": STANDS, "b": not_yet}).is_started(row("1", "a", "b"))
    assert not Judge({"a": STANDS, "b": not_yet}).is_started(row("1", "a", "b?"))
    assert Judge({"a": STANDS, "b": GONE}).is_started(row("1", "a", "b"))
    assert Judge({}).is_started(MappedRow(Entry("1", "x"), fault=ObjectRejected("KeyCannotBeMapped", "why")))


@pytest.fixture
def migration(migration: Migration) -> Migration:
    """Five rows of a document of keys: one lacks an object, one meets another one in production."""
    migration.execute("create table public.photos (id bigint primary key, data jsonb)")
    for number in range(1, 6):
        keys = [f"image/{number}/{size}" for size in ("large", "small", "tiny")]
        document = json.dumps({"keys": [*keys, "image/shared"], "title": "x" * 500})
        migration.execute("insert into public.photos values (%s, %s)", (number, document))
        for key in keys:
            if key != "image/2/small":
                migration.legacy.put(key, b"body")
    migration.legacy.put("image/shared", b"shared")
    migration.production.put("avatar/4/tiny", b"another")
    migration.plan_entries("public.photos", **keyed("data", path="$.keys[*]"))
    return migration


def test_entries_and_bytes_balance_and_errors_name_the_object(migration: Migration) -> None:
    migration.plan["migration"]["transfer"] = "stream"
    assert migration.migrate() == {"migrated": 3, "missing": 1, "conflict": 1}
    assert migration.batch()["bytes"] == 3 * 3 * len("body") + len("shared")
    migration.check_balance()
    by_id = {failure["entry_id"]: failure for failure in migration.failures()}
    assert by_id["2"]["error"].startswith("'image/2/small': ")
    assert by_id["4"]["error"].startswith("'image/4/tiny': a different object is at the production key")
    for number in (2, 4):
        (found,) = migration.execute("select data -> 'keys' ->> 0 as key from public.photos where id = %s", (number,))
        assert found["key"] == f"image/{number}/large"


def test_errors_show_a_long_document_in_part(migration: Migration) -> None:
    document = json.dumps({"keys": [f"image/nowhere/{number}" for number in range(100)]})
    migration.execute("insert into public.photos values (7, %s)", (document,))
    migration.migrate()
    migration.write_plan()
    for arguments in ((), ("--entries",)):
        shown = migration.run("errors", *arguments).stdout
        assert max(map(len, shown.splitlines())) < 400
        assert "'image/nowhere/0': " in shown or "'image/2/small': " in shown
    (missing,) = [
        group for group in json.loads(migration.run("errors", "--json").stdout) if group["outcome"] == "missing"
    ]
    assert missing["entries"] == 2
    assert missing["example_error"].split(": ", maxsplit=1)[0].strip("'") in missing["example_key"]


def test_a_budget_that_ends_within_an_entry_puts_it_back_whole(migration: Migration) -> None:
    migration.execute("delete from public.photos where id in (2, 4)")
    migration.enqueue()
    take_one_turn(until=time.monotonic())
    assert "DONE" not in migration.statuses() or len(migration.batches()) > 1
    rows = migration.execute("select data -> 'keys' as keys from public.photos")
    assert {len({key.partition("/")[0] for key in row["keys"]}) for row in rows} == {1}
    migration.work_again()
    assert migration.statuses() == {"DONE"}
    migration.check_balance()
    assert sum(migration.counts().values()) == 3


def test_an_object_that_one_row_needs_and_another_may_lack_is_missing_for_the_one(migration: Migration) -> None:
    """Whichever of the two verify reads first."""
    migration.execute("create table public.shared (id bigint primary key, key text, optional text, store integer)")
    migration.execute("insert into public.shared values (1, 'x', 'gone', 2), (2, 'gone', 'x', 2), (3, 'x', 'gone', 2)")
    migration.production.put("x", b"body")
    migration.plan_entries(
        "public.shared", **keyed("key", "", "", moved={"store": [1, 2]}, objects="key", optional="optional")
    )
    (batch,) = verify(migration)
    assert (batch["status"], outcomes([batch])) == ("ERROR", {"kept": 2, "missing": 1})
    assert migration.failure_of(2)[0] == "missing"


def test_a_long_text_is_shortened_in_its_middle() -> None:
    assert shorten("a" * 120) == "a" * 120
    assert shorten("a" * 60 + "b" * 61) == "a" * 60 + "…" + "b" * 59


def test_a_text_that_is_the_prefix_alone_changes_where_objects_are_computed(migration: Migration) -> None:
    """The column names the store, and the keys are made of the id."""
    migration.execute("create table public.stored (id bigint primary key, backend text)")
    migration.execute("insert into public.stored values (1, 'fs'), (2, 'fs'), (3, 'fs/fs')")
    migration.plan_entries(
        "public.stored",
        **keyed("backend", "fs", "s3", legacy_object="", production_object="", objects="'blobs/' || id"),
    )
    for number in (1, 2, 3):
        migration.legacy.put(f"blobs/{number}", b"body")
    assert migration.migrate() == {"migrated": 3}
    texts = [row["backend"] for row in migration.execute("select backend from public.stored order by id")]
    assert texts == ["s3", "s3", "s3/fs"]
    assert outcomes(verify(migration)) == {"kept": 3}
