"""Looks on during a scenario: at every instant each row's key names an object that holds the right bytes."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from threading import Event, Lock, Thread
from typing import Self

import psycopg

from rowferry_lab.servers.s3_servers import S3Server
from support.entries.entry_table import FROM
from support.s3.objects import ObjectSide
from torture.coverage import Coverage
from torture.object_reader import ObjectReader
from torture.oracle import Oracle

ROWS = "select id::text, path from public.avatars where path is not null"
IDS = "select id::text from public.avatars"
KEY = "select path from public.avatars where id::text = %s"
KEYS_AT_ONCE = 100
LONGEST_OUTAGE = timedelta(seconds=120)
MOST_MOVES = 20
"""A row whose key is another one at each look is given up after so many: it never stood still for a violation."""
SAMPLES = 20
"""So many violations are described; all are counted."""

Look = Callable[[psycopg.Connection, ObjectReader, Coverage], None]


class Auditor:
    """Two threads with connections of their own: one follows every change of a key, one sweeps over all rows.

    A violation is a row that still names the object that was found missing or different when it is read again; and
    that a thread was blind, so that it proves nothing.
    """

    def __init__(
        self, dsn: str, server: S3Server, legacy: ObjectSide, production: ObjectSide, oracle: Oracle, *, seed: int = 0
    ) -> None:
        self._dsn, self._server, self._oracle = dsn, server, oracle
        self._buckets = (legacy.bucket, production.bucket)
        self._random = random.Random(seed)
        self._turn = Lock()
        self._ended = Event()
        self._coverages: list[tuple[Thread, Coverage]] = []
        self.count = 0
        """Violations."""
        self.violations: list[str] = []
        """The first of them, in words."""

    def __enter__(self) -> Self:
        looks: dict[str, Look] = {"follows changes": self._follow, "sweeps": self._sweep}
        for name, look in looks.items():
            coverage = Coverage(name)
            thread = Thread(target=self._guard, args=[look, coverage], daemon=True)
            self._coverages.append((thread, coverage))
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop looking, and report what was not seen; may be called again."""
        if self._ended.is_set():
            return
        living = [thread.is_alive() for thread, _ in self._coverages]
        self._ended.set()
        for alive, (thread, coverage) in zip(living, self._coverages, strict=True):
            for words in coverage.faults(living=alive, rows=len(self._oracle.ids())):
                self.report(words)
            thread.join(LONGEST_OUTAGE.total_seconds() + 60)
            if thread.is_alive():
                self.report(f"the auditor was blind: the thread that {coverage.name} hangs")

    @property
    def audits(self) -> int:
        """Return how many objects both threads have read and held against their row."""
        return sum(coverage.audits for _, coverage in self._coverages)

    @contextmanager
    def awake(self, words: str) -> Iterator[None]:
        """Report it, in these words, when no audit is made until the block ends."""
        before = self.audits
        yield
        if self.audits == before:
            self.report(f"the auditor was blind: no audit while {words}")

    def report(self, words: str) -> None:
        """Count a violation."""
        with self._turn:
            self.count += 1
            if len(self.violations) < SAMPLES:
                self.violations.append(words)

    def check_all(self) -> set[str]:
        """Check every row once, now; return the ids of all rows."""
        coverage = Coverage("checks all")  # Of its own: what is seen in the end says nothing about what went before.
        with self._connect() as connection, closing(ObjectReader(self._server)) as reader:
            for row_id, key in connection.execute(ROWS).fetchall():
                self._check(connection, reader, coverage, row_id, key)
            return {row_id for (row_id,) in connection.execute(IDS).fetchall()}

    # The two threads

    def _guard(self, body: Look, coverage: Coverage) -> None:
        """Run a thread's body until the end; an outage of PostgreSQL is survived, nothing else is."""
        with closing(ObjectReader(self._server)) as reader:
            while not self._ended.is_set():
                try:
                    with self._connect() as connection:
                        body(connection, reader, coverage)
                except psycopg.OperationalError:
                    self._ended.wait(0.05)
                except Exception as error:  # noqa: BLE001 - else the auditor would be silent for ever
                    self.report(f"the auditor itself failed: {error!r}")
                    return

    def _follow(self, connection: psycopg.Connection, reader: ObjectReader, coverage: Coverage) -> None:
        """Check each row as soon as it is seen with another key than before."""
        seen: dict[str, str] = {}
        while not self._ended.is_set():
            began = time.monotonic()
            rows = connection.execute(ROWS).fetchall()
            coverage.look()
            took = time.monotonic() - began
            changed = [(row_id, key) for row_id, key in rows if seen.get(row_id) != key]
            self._check_many(connection, reader, coverage, changed)
            seen = dict(rows)
            self._ended.wait(max(0.1, 4 * took))

    def _sweep(self, connection: psycopg.Connection, reader: ObjectReader, coverage: Coverage) -> None:
        """Check all rows in a random order, again and again, in half of the time."""
        while not self._ended.is_set():
            rows = connection.execute(ROWS).fetchall()
            coverage.look()
            self._random.shuffle(rows)
            for start in range(0, len(rows), KEYS_AT_ONCE):
                began = time.monotonic()
                ids = [row_id for row_id, _ in rows[start : start + KEYS_AT_ONCE]]
                fresh = connection.execute(f"{ROWS} and id::text = any(%s)".encode(), [ids]).fetchall()
                self._check_many(connection, reader, coverage, fresh)
                self._ended.wait(time.monotonic() - began)
            self._ended.wait(0.1)

    def _check_many(
        self, connection: psycopg.Connection, reader: ObjectReader, coverage: Coverage, rows: Sequence[tuple[str, str]]
    ) -> None:
        for row_id, key in rows:
            if self._ended.is_set():
                return
            self._check(connection, reader, coverage, row_id, key)

    def _check(
        self, connection: psycopg.Connection, reader: ObjectReader, coverage: Coverage, row_id: str, key: str
    ) -> None:
        """Hold one row against its object; it may move on meanwhile."""
        for _ in range(MOST_MOVES):
            found = reader.read(self._buckets[not key.startswith(FROM)], key)
            coverage.audit()
            if self._oracle.allows(row_id, found and found.body):
                return
            again = connection.execute(KEY, [row_id]).fetchone()
            if again is None or again[0] is None:
                return  # Deleted; whether by the application, is found out in the end.
            if again[0] == key:
                what = "names no object" if found is None else f"names an object of {len(found.body)} wrong bytes"
                self.report(f"row {row_id} {what}: {key!r}")
                return
            key = again[0]

    def _connect(self) -> psycopg.Connection:
        """Connect, however long PostgreSQL is away. Raises the last error after LONGEST_OUTAGE."""
        give_up_at = time.monotonic() + LONGEST_OUTAGE.total_seconds()
        while True:
            try:
                return psycopg.connect(self._dsn, autocommit=True, connect_timeout=5, application_name="auditor")
            except psycopg.OperationalError:
                if self._ended.is_set() or time.monotonic() > give_up_at:
                    raise
                time.sleep(0.05)
