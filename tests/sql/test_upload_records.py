"""One attempt at a time holds the record of a multipart upload, whatever has become of the batch it began in."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from rowferry.batch import Attempt, Batch, Judgement, Verdict
from rowferry.db.connection import Connection, connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.verdict import write_failure
from rowferry_worker.ledger import Ledger
from support.entries.entry_table import EntryTable
from support.queue.held_batches import claim, split

WHERE, KEY = "https://s3.test/new", "avatar/large.bin"


class Workers:
    """Sessions that claim, and the ledger's connection beside them."""

    def __init__(self, table: EntryTable, until: ExitStack) -> None:
        self.table, self._until = table, until
        self.ledger = until.enter_context(closing(Ledger("test")))

    def claim(self) -> tuple[Connection, Batch, Attempt]:
        """Claim the batch that is due longest, on a session of its own."""
        session = self._until.enter_context(closing(connect("worker")))
        batch = claim(session)
        return session, batch, begin_attempt(self.ledger, batch, "test")

    def take(self, batch: Batch, attempt: Attempt, legacy_key: str = "image/large.bin") -> dict[str, Any]:
        (row,) = self.ledger.call("take_upload", batch.id, attempt.id, WHERE, KEY, "old", legacy_key)
        return row

    def begin(self, batch: Batch, attempt: Attempt) -> None:
        """Take the record, and have an upload recorded there."""
        assert self.take(batch, attempt)["is_held"]
        self.table.execute("update rowferry.upload set upload_id = 'u1'")

    def split(self) -> None:
        """End the time budget of an attempt: its first entry stays, with an upload begun; the others go."""
        session, batch, attempt = self.claim()
        self.begin(batch, attempt)
        split(session, batch.id, "1", batch.payload["last"], count=9, keep="0")
        write_failure(session, batch, attempt, Judgement(Verdict.RELEASED, timedelta(0), "the budget"))
        session.commit()


@pytest.fixture
def workers(ten: EntryTable) -> Iterator[Workers]:
    with ExitStack() as until:
        yield Workers(ten, until)


def test_an_upload_goes_on_with_its_batch_while_what_was_split_off_is_claimed(workers: Workers) -> None:
    workers.split()
    taken = [workers.claim(), workers.claim()]
    (whole,) = [(batch, attempt) for _, batch, attempt in taken if batch.payload["first"] == "0"]
    (rest,) = [(batch, attempt) for _, batch, attempt in taken if batch.payload["first"] == "1"]
    row = workers.take(*whole)
    assert (row["is_held"], row["upload_id"]) == (True, "u1")
    assert not workers.take(*rest)["is_held"], "one attempt at a time"


@pytest.mark.parametrize("ends", ["LOST", None])
def test_an_upload_goes_to_the_next_once_its_batch_is_free(workers: Workers, ends: str | None) -> None:
    """The attempt may be open still: its worker has died."""
    workers.table.add_legacy([20]).enqueue(1)
    session, batch, attempt = workers.claim()
    _, other, second = workers.claim()
    workers.begin(batch, attempt)
    assert not workers.take(other, second)["is_held"]
    session.rollback()
    if ends:
        workers.ledger.call("end_attempt", attempt.id, ends, "as the test wants it")
    assert workers.take(other, second)["upload_id"] == "u1"


def test_an_upload_of_another_object_is_taken_once_its_batch_does_not_go_on(workers: Workers) -> None:
    """Two that abort each other's uploads would never end."""
    workers.table.add_legacy([20]).enqueue(1)
    session, batch, attempt = workers.claim()
    _, other, second = workers.claim()
    workers.begin(batch, attempt)
    workers.table.execute("update rowferry.upload set legacy = 'old', legacy_key = 'image/large.bin'")
    session.rollback()
    assert not workers.take(other, second, "image/other.bin")["is_held"]
    workers.table.execute("update rowferry.batch_queue set status = 'ERROR' where id = %s", (batch.id,))
    assert workers.take(other, second, "image/other.bin")["is_held"]


def test_an_upload_that_is_taken_takes_no_other_along(workers: Workers) -> None:
    """Of the same bucket, and of the same key in another bucket."""
    workers.table.add_legacy([20]).enqueue(1)
    _, batch, attempt = workers.claim()
    _, other, second = workers.claim()
    places = [(WHERE, "avatar/other.bin"), ("https://s3.test/another", KEY)]
    for where, key in places:
        workers.ledger.call("take_upload", batch.id, attempt.id, where, key, "old", "image/large.bin")
    assert workers.take(other, second)["is_held"]
    rows = workers.table.execute("select production, key, batch_id, attempt_id from rowferry.upload order by id")
    assert [tuple(row.values()) for row in rows] == [
        *((where, key, batch.id, attempt.id) for where, key in places),
        (WHERE, KEY, other.id, second.id),
    ]


@pytest.mark.parametrize("left", ["0", "1"])
def test_an_upload_will_go_on_while_either_half_of_its_batch_waits(workers: Workers, left: str) -> None:
    workers.split()
    workers.table.execute("update rowferry.upload set touched_at = now() - interval '2 days'")
    workers.table.execute("delete from rowferry.batch_queue where payload ->> 'first' <> %s", (left,))
    (upload,) = workers.table.execute("select * from rowferry.open_uploads")
    assert upload["will_continue"]
    workers.table.execute("select rowferry.prune_leftovers('1 day')")
    assert len(workers.table.execute("select from rowferry.upload")) == 1
    workers.table.execute("delete from rowferry.batch_queue")
    (upload,) = workers.table.execute("select * from rowferry.open_uploads")
    assert not upload["will_continue"]
    workers.table.execute("select rowferry.prune_leftovers('1 day')")
    assert workers.table.execute("select from rowferry.upload") == []


@pytest.mark.parametrize(("due", "moves"), [("1 hour", True), ("-1 hour", False)])
def test_the_last_part_makes_a_batch_that_rests_due_and_no_other(workers: Workers, due: str, moves: bool) -> None:
    """One that is due already keeps its place in the line."""
    workers.table.add_legacy([20]).enqueue(1)
    _, batch, attempt = workers.claim()
    workers.begin(batch, attempt)
    workers.table.execute(
        "update rowferry.upload set size_bytes = 2, part_bytes = 1, "
        "batch_id = (select max(q.id) from rowferry.batch_queue as q)"
    )
    whole = "from rowferry.batch_queue where id = (select batch_id from rowferry.upload)"
    workers.table.execute(f"update rowferry.batch_queue set run_after = now() + interval '{due}' where id = 2")
    (before,) = workers.table.execute(f"select id, run_after {whole}")
    assert before["id"] == 2
    for number in (1, 2):
        (row,) = workers.table.execute(f"select run_after {whole}")
        assert row["run_after"] == before["run_after"], "a part is missing"
        workers.ledger.call("record_parts", attempt.id, WHERE, KEY, "u1", Jsonb({str(number): "e" * 32}))
    (row,) = workers.table.execute(
        f"select run_after <> %s as moved, run_after <= now() as is_due {whole}", (before["run_after"],)
    )
    assert row == {"moved": moves, "is_due": True}


def test_a_part_is_recorded_with_its_own_objects_upload(workers: Workers) -> None:
    """Servers number the uploads of each object as they like: two may have the same id."""
    _, batch, attempt = workers.claim()
    keys = ["avatar/other.bin", KEY]
    for key in keys:
        workers.ledger.call("take_upload", batch.id, attempt.id, WHERE, key, "old", "image/large.bin")
    workers.table.execute("update rowferry.upload set upload_id = 'u1'")
    for number, key in enumerate(keys, start=1):
        workers.ledger.call("record_parts", attempt.id, WHERE, key, "u1", Jsonb({str(number): "e" * 32}))
    for attempt_id, upload in ((attempt.id + 1, "u1"), (attempt.id, "another")):
        (row,) = workers.ledger.call("record_parts", attempt_id, WHERE, KEY, upload, Jsonb({"99": "x"}))
        assert row == {"record_parts": False}, "it does not hold the upload"
    parts = "select u.key, p.number from rowferry.upload as u inner join rowferry.upload_part as p on u.id = p.upload"
    assert [(row["key"], row["number"]) for row in workers.table.execute(f"{parts} order by p.number")] == [
        (keys[0], 1), (KEY, 2)
    ]  # fmt: skip
