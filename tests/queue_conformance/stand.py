"""One queue at a test's command: its entries, its batches, workers of every kind, and what the end must be."""

import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from queue_conformance.fixture import QueueFixture
from rowferry.batch import Entry, EntryResult, Outcome, Performed
from rowferry.db.connection import Connection
from rowferry.errors import RowBusy
from rowferry.plan import SideName
from rowferry_worker.batch.context import BatchContext, Perform
from support.entries.entry_table import Record
from support.entries.migration import Migration
from support.processes.cli import run_in_own_process
from support.processes.forked import HOOK
from support.queue.at_work import working

TESTS = Path(__file__).parent.parent
LOOK_AT_TRANSACTION = """
select
    pg_current_xact_id()::text as transaction,
    (
        select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_xact_all_tables where schemaname = 'rowferry'
    )::int as writes
"""
OUTCOMES = ", ".join(f"sum({outcome})::int as {outcome}" for outcome in Outcome)
FOLLOW = """
insert into rowferry.queue (migration_id, name, next)
select id, %(queue)s, %(next)s from rowferry.migration
on conflict (migration_id, name) do update set next = excluded.next
"""
SCAN = f"select count(*)::int as batches, sum(entry_count)::int as entries, {OUTCOMES}"
WRITE_LOG = "create table public.write_log (place bigint generated always as identity, key text)"


def look_at_transaction(connection: Connection) -> tuple[str, int]:
    """Return the transaction's id, and how many rows of rowferry's tables it has written so far."""
    row = connection.execute(LOOK_AT_TRANSACTION).fetchone()
    assert row is not None
    return row["transaction"], row["writes"]


@dataclass
class Stand:
    """`count` entries of one queue."""

    fixture: QueueFixture
    migration: Migration
    count: int
    following: str | None = None
    given: list[list[str]] = field(default_factory=list)
    """The ids of the entries that each perform was given, in order."""

    @property
    def queue(self) -> str:
        return self.fixture.spec.name

    @property
    def sides(self) -> frozenset[SideName]:
        """The buckets that the queue opens, with the fixture's settings."""
        return self.fixture.spec.find_sides(convert(dict(self.fixture.settings), self.fixture.spec.settings))

    def prepare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the entries. A queue without sides gets a plan without buckets, and no credentials."""
        plan = self.migration.plan
        plan["queue"] = {self.queue: dict(self.fixture.settings)}
        if not self.sides:
            del plan["legacy"], plan["production"]
            for name in self.migration.environment:
                if name.endswith(("_KEY_ID", "_ACCESS_KEY")):
                    monkeypatch.delenv(name)
        if "table" not in self.fixture.spec.sources:
            del plan["entries"]
        self.fixture.prepare(self.migration, self.count)
        self.migration.write_plan()

    def spoil(self, number: int) -> None:
        self.fixture.spoil(self.migration, number)

    @contextmanager
    def enqueued(self) -> Iterator[None]:
        """Put the entries in the queue; nothing else is in it."""
        self.fixture.enqueue(self.migration, self.count)
        if self.following is not None:
            self.migration.execute(FOLLOW, {"queue": self.queue, "next": [self.following]})
        assert [batch["entry_count"] for batch in self.batches()] == [self.count]
        yield

    # What is done with it

    def put_back(self) -> None:
        """Put finished batches back, as an operator does."""
        self._execute("update rowferry.batch_queue set status = 'INIT' where queue_name = %s and status <> 'INIT'")

    def make_due(self) -> None:
        self._execute("update rowferry.batch_queue set run_after = now() where queue_name = %s and status = 'INIT'")

    def terminate(self, backend_pid: int) -> None:
        """End a session from another one."""
        self.migration.execute("select pg_terminate_backend(%s, 10000)", (backend_pid,))

    def run_worker(self) -> None:
        """Let another worker, which is in this process, do all that is left."""
        with working(self.queue) as worker:
            worker.work()

    def run_doomed(self, step: str) -> bool:
        """Run a worker process that kills itself after a step; return whether it did, else it has done all."""
        return self._run_with(f"STEPS[{step!r}]()")

    def run_poisoned(self, entry_id: str) -> bool:
        """The same for a worker process that kills itself as soon as a perform is given this entry."""
        return self._run_with(f"die_of_an_entry({entry_id!r})")

    def _run_with(self, crash: str) -> bool:
        hook = self.migration.folder / "hook" / HOOK
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"from queue_conformance.crash_injector import STEPS, die_of_an_entry\n{crash}\n")
        paths = [str(hook.parent), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        arguments = ("worker", "--processes=1", f"--queue={self.queue}", "--until-empty", "--max-batches=1")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        done = run_in_own_process(arguments, environment, self.migration.folder)
        sys.stdout.write(done.stderr)  # which pytest shows where a test fails
        status = done.returncode
        assert status in {0, -9}
        self.migration.execute("delete from rowferry.worker")  # so that no claim waits for a dead worker's heartbeat
        self.make_due()
        return status == -9

    @staticmethod
    def reversed(perform: Perform, context: BatchContext, entries: Sequence[Entry]) -> Performed:
        """Perform a batch whose entries came in another order."""
        return perform(context, list(reversed(entries)))

    def log_writes(self) -> None:
        """Log the keys of the rows that are written from now on."""
        if self.fixture.writes is not None:
            table, column = self.fixture.writes
            self.migration.execute(WRITE_LOG)
            note = f"insert into public.write_log (key) values (to_jsonb(new) ->> '{column}'); return new;"
            self.migration.add_trigger(note, f"before insert or update on {table}")

    def written(self) -> list[str]:
        """Return the keys of the rows that were written since, in that order."""
        if self.fixture.writes is None:
            return []
        return [row["key"] for row in self.migration.execute("select key from public.write_log order by place")]

    def fail_one_and_retry(self) -> list[str]:
        """Let an attempt do all, and say that one entry failed; make another. Return what that one must be given."""
        failed: list[str] = []

        def fail_one(perform: Perform, context: BatchContext, entries: Sequence[Entry]) -> Performed:
            *results, last = perform(context, entries).results
            failed.append(last.entry.id)
            return Performed([*results, EntryResult.from_error(last.entry, RowBusy("the suite says so"))])

        with self.enqueued(), working(self.queue) as worker:
            worker.take_turn(fail_one)
            assert {batch["status"] for batch in self.batches()} == {"INIT"}
            self.make_due()
            worker.take_turn()
            self.given = worker.given
        return failed

    def spoil_one_and_requeue(self, number: int) -> list[str]:
        """Let an attempt fail for a spoiled entry, and make another. Return what that one must be given."""
        self.spoil(number)
        with self.enqueued(), working(self.queue) as worker:
            worker.take_turn()
            (batch,) = self.batches()
            assert batch["status"] == "ERROR"
            failed = [failure["entry_id"] for failure in self.failures()]
            self.put_back()
            worker.take_turn()
            self.given = worker.given
        return failed

    def add_following(self, name: str) -> None:
        """Let another queue follow once there are batches; no worker serves it."""
        self.following = name

    # What has become of it

    def look(self) -> Mapping[int, object]:
        return self.fixture.look(self.migration)

    def objects(self) -> tuple[object, ...]:
        """Return all that a write to either bucket would change."""
        return self.migration.legacy.listing(), self.migration.production.listing()

    def batches(self) -> list[Record]:
        return [batch for batch in self.migration.batches() if batch["queue_name"] == self.queue]

    def attempts(self) -> list[Record]:
        ids = {batch["id"] for batch in self.batches()}
        return [attempt for attempt in self.migration.attempts() if attempt["batch_id"] in ids]

    def handed_on(self) -> list[int]:
        """Return the numbers of the entries that the following queue was given."""
        batches = [batch for batch in self.migration.batches() if batch["queue_name"] == self.following]
        return [number for batch in batches for number in self._list_numbers(batch["payload"])]

    def _list_numbers(self, payload: Mapping[str, Any]) -> list[int]:
        number_of = self.fixture.number_of
        if "items" in payload:
            return [number_of(item["id"]) for item in payload["items"]]
        if "only" in payload:
            return [number_of(entry_id) for entry_id in payload["only"]]
        first, last = number_of(payload["first"]), number_of(payload["last"])
        return [number for number in range(1, self.count + 1) if first <= number <= last]

    def failures(self) -> list[Record]:
        return self.migration.failures()

    def check_done(self, *, but: Collection[int] = ()) -> None:
        """Check that all is done that can be, nothing twice, and that every account of it agrees."""
        numbers = set(range(1, self.count + 1)) - set(but)
        found = self.look()
        assert {number: made for number, made in found.items() if number not in but} == {
            number: self.fixture.wanted(number) for number in numbers
        }
        left = sum(batch[outcome] for batch in self.batches() for outcome in Outcome if not outcome.settled)
        assert left == len(but)
        assert {batch["status"] for batch in self.batches()} <= ({"DONE", "ERROR"} if but else {"DONE"})
        assert sum(batch["entry_count"] for batch in self.batches()) == self.count
        self.check_balance()

    def check_balance(self) -> None:
        """Check that counts, the tally and the views say the same."""
        self.migration.check_balance()
        (scanned,) = self._execute(f"{SCAN} from rowferry.batch_queue where queue_name = %s")
        told = SCAN.replace("count(*)", "sum(batches)").replace("entry_count", "entries")
        for view in ("table_progress", "progress"):
            assert self._execute(f"{told} from rowferry.{view} where queue_name = %s") == [scanned]
        outcomes = sum(scanned[outcome] for outcome in Outcome)
        assert scanned["entries"] == outcomes

    def read_entry_ids(self) -> list[str]:
        """Return the ids that a batch of these entries has."""
        (batch,) = self.batches()
        if "items" in batch["payload"]:
            return [item["id"] for item in batch["payload"]["items"]]
        return [str(number) for number in range(1, self.count + 1)]

    def _execute(self, query: str) -> list[Record]:
        return self.migration.execute(query, (self.queue,))
