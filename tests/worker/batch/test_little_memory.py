"""Nothing needs `work_mem` to be raised: with PostgreSQL's smallest, 64 kB, a worker writes no temporary file at all,
and an enqueue no more than the sort of its ids."""

import io
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from rowferry.batch import Attempt, Batch, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import Connection, connect
from rowferry.db.entries import EntryQueries
from rowferry_enqueue.check import check_rows
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_queues.migrate.spec import MIGRATE
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.row_update import RowChange, update_rows
from rowferry_worker.batch.sources.table import read_entries
from rowferry_worker.batch.verdict import write_verdict
from support.entries.entry_table import FROM, TO, EntryTable
from support.postgres.ordinary import set_as_administrator
from support.queue.held_batches import begin
from support.queue.reports import read_report

ROWS = 100_000
BATCH_SIZE = 100
"""As by default. An update sorts its rows with both keys: 64 kB hold some hundred of them, 4 MB some ten thousand."""
FRUGAL = {"work_mem": "64kB", "hash_mem_multiplier": "1", "log_temp_files": "0", "client_min_messages": "log"}
FILL = "insert into public.avatars select i, %s || repeat('x', 30) || i from generate_series(1, %s) as i"


class Spills:
    """The temporary files that one connection's statements write, in bytes."""

    def __init__(self) -> None:
        self._bytes: list[int] = []

    def note(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        if found := re.search(r"temporary file: .*size (\d+)", diagnostic.message_primary or ""):
            self._bytes.append(int(found[1]))

    def take(self) -> int:
        """Return what was spilled since the last time."""
        total = sum(self._bytes)
        self._bytes.clear()
        return total


@contextmanager
def frugal(*, autocommit: bool = False) -> Iterator[tuple[Connection, Spills]]:
    """Yield a connection with the smallest work_mem there is, and what it spills."""
    spills = Spills()
    with closing(connect("frugal", autocommit=autocommit)) as connection:
        set_as_administrator(connection, FRUGAL)
        connection.commit()
        connection.add_notice_handler(spills.note)
        yield connection, spills


@pytest.fixture
def full(table: EntryTable) -> EntryTable:
    """A hundred thousand legacy entries with keys of 40 bytes, in batches of a hundred."""
    table.execute(FILL, (FROM, ROWS))
    table.execute("vacuum analyze public.avatars")
    table.enqueue(BATCH_SIZE)
    return table


def claim(connection: Connection) -> tuple[Batch, Attempt]:
    batch = claim_batch(connection, ["migrate"])
    assert batch is not None
    return batch, begin(connection, batch)


def test_a_spill_would_be_seen(full: EntryTable) -> None:
    with frugal() as (connection, spills):
        connection.execute("select path from public.avatars order by path desc").fetchall()
        assert spills.take() > ROWS * 40


@pytest.mark.parametrize("failing", [False, True])
def test_a_worker_writes_no_temporary_file(full: EntryTable, failing: bool) -> None:
    """Claim, read, update and verdict of a hundred entries, all moved or all failed."""
    with frugal() as (connection, spills):
        queries = EntryQueries.of(connection, full.read_plan().entries[0])
        for _ in range(7):  # Plans are kept from the sixth time on.
            batch, attempt = claim(connection)
            entries = read_entries(connection, queries, batch.payload["first"], batch.payload["last"])
            assert len(entries) == BATCH_SIZE
            if failing:
                results = [EntryResult(entry, Outcome.MISSING, reason="NoSuchKey", error="gone") for entry in entries]
            else:
                moves = [RowChange(entry, (TO + entry.key,)) for entry in entries]
                results = update_rows(connection, queries, moves)
            judgement = Judgement(Verdict.ERROR if failing else Verdict.DONE)
            write_verdict(connection, batch, attempt, judgement, results)
            connection.commit()
        assert spills.take() == 0


@pytest.mark.parametrize("waiting", [False, True], ids=["first pass", "beside waiting batches"])
def test_an_enqueue_spills_one_sort_of_ids_at_most(full: EntryTable, waiting: bool) -> None:
    """Where no index gives them in their order: ids, their places on the line, and what a tape needs."""
    full.execute("delete from rowferry.batch_queue" + (" where id % 2 = 0" if waiting else ""))
    with frugal(autocommit=True) as (connection, spills):
        connection.execute("set enable_indexscan = off")
        connection.execute("set enable_indexonlyscan = off")
        (done,) = enqueue(connection, full.read_plan(), EnqueueRequest(MIGRATE, BATCH_SIZE))
        assert done.entries == (ROWS // 2 if waiting else ROWS)
        assert 0 < spills.take() <= ROWS * 64


@pytest.mark.parametrize("waiting", [False, True], ids=["first pass", "beside waiting batches"])
def test_an_enqueue_in_the_order_of_an_index_spills_batches_and_no_entries(full: EntryTable, waiting: bool) -> None:
    """More than the memory holds: each is grouped from its first and its last entry, sorted, and shown to triggers."""
    full.execute("delete from rowferry.batch_queue" + (" where id % 2 = 0" if waiting else ""))
    bounds = ROWS // BATCH_SIZE // 2 * 2 * 4 * 64 if waiting else 0
    with frugal(autocommit=True) as (connection, spills):
        (done,) = enqueue(connection, full.read_plan(), EnqueueRequest(MIGRATE, BATCH_SIZE // 2))
        assert done.entries == (ROWS // 2 if waiting else ROWS)
        assert 0 < spills.take() <= done.batches * 600 + bounds


def test_an_enqueue_sorts_what_is_new_and_not_what_waits(full: EntryTable) -> None:
    """It spills the bounds of the ranges that wait, twice sorted and twice numbered, and nothing an entry."""
    full.execute("insert into public.avatars select -i, %s || i from generate_series(1, 50) as i", (FROM,))
    with frugal(autocommit=True) as (connection, spills):
        (done,) = enqueue(connection, full.read_plan(), EnqueueRequest(MIGRATE, BATCH_SIZE))
        assert done.entries == 50
        assert spills.take() <= ROWS // BATCH_SIZE * 2 * 4 * 64


def test_check_and_report_write_what_their_sorts_need(full: EntryTable) -> None:
    """The check for clashes looks at every key at once, the account at every batch: nothing grows faster than these."""
    found: dict[str, Any] = {}
    with frugal(autocommit=True) as (connection, spills):
        list(check_rows(connection, full.read_plan(), "fail", lambda _: None))
        found["check"] = spills.take()
        full.execute("update rowferry.batch_queue set status = 'DONE', migrated = entry_count")
        read_report(connection, "avatars", io.StringIO())
        found["report"] = spills.take()
    assert found["check"] <= ROWS * 3 * 200
    assert found["report"] <= ROWS // BATCH_SIZE * 300
