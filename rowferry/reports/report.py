"""The account of a migration: what became of the entries of its batches, by queue and table; and what is left."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TextIO

from psycopg import IsolationLevel

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.reports.progress import Counts

_OWN = ("attempts", "started_at", "finished_at", "parked_batches", "parked_entries")
FETCHED_AT_ONCE = 2_000
"""Lines of the manifest that are in memory at a time."""


@dataclass(frozen=True, slots=True)
class TableAccount:
    """What one queue did with the entries of one table."""

    queue: str
    label: str
    counts: Counts
    attempts: int
    started_at: datetime | None
    finished_at: datetime | None
    parked_batches: int = 0
    """Batches that somebody has set to ERROR by hand: no attempt has ended so."""
    parked_entries: int = 0
    """Their entries that have no outcome; `counts` has them among those that wait."""

    @property
    def waiting(self) -> int:
        """Return the entries that workers will come to by themselves."""
        return self.counts.waiting - self.parked_entries

    @property
    def outcomes(self) -> dict[str, int]:
        """Return all entries by what became of them so far; the sum is `counts.entries`."""
        unfinished = {"waiting": self.waiting, "parked": self.parked_entries}
        return unfinished | {str(name): count for name, count in self.counts.outcomes.items()}

    @property
    def duration(self) -> timedelta | None:
        """Return the time from the first attempt's start to the last one's end; None before that."""
        return self.finished_at - self.started_at if self.started_at and self.finished_at else None

    def as_document(self) -> dict[str, Any]:
        """Return the account as plain data, for JSON."""
        counts, duration = self.counts, self.duration
        return {
            "queue": self.queue,
            "entries_of": self.label,
            "entries": counts.entries,
            "outcomes": self.outcomes,
            "batches": {"init": counts.batches_init, "done": counts.batches_done, "error": counts.batches_error},
            "batches_parked": self.parked_batches,
            "attempts": self.attempts,
            "bytes": counts.bytes,
            "started_at": self.started_at and self.started_at.isoformat(),
            "finished_at": self.finished_at and self.finished_at.isoformat(),
            "seconds": None if duration is None else duration.total_seconds(),
            "balances": counts.balances,
        }


@dataclass(frozen=True, slots=True)
class Account:
    """All that became of one migration so far."""

    migration: str
    tables: tuple[TableAccount, ...] = field(default_factory=tuple[TableAccount, ...])

    @property
    def balances(self) -> bool:
        """Return whether every entry is accounted for."""
        return all(table.counts.balances for table in self.tables)

    @property
    def settled(self) -> bool:
        """Return whether nothing waits and nobody has to look at anything."""
        return not any(table.counts.batches_init or table.counts.batches_error for table in self.tables)

    @property
    def reverted(self) -> dict[str, int]:
        """Return the rows that were put back to legacy keys, by table, where nothing has migrated since."""
        migrated_at = {table.label: table.finished_at for table in self.tables if table.queue == "migrate"}
        return {
            table.label: table.counts.migrated
            for table in self.tables
            if table.queue == "revert" and table.counts.migrated and _is_later(table, migrated_at.get(table.label))
        }

    def as_document(self) -> dict[str, Any]:
        """Return the account as plain data, for JSON."""
        return {
            "migration": self.migration,
            "settled": self.settled,
            "reverted": self.reverted,
            "balances": self.balances,
            "tables": [table.as_document() for table in self.tables],
        }


def read_account(connection: Connection, migration: str, manifest: TextIO | None = None) -> tuple[Account, int]:
    """Return the account of a migration, and how many lines were written to `manifest`.

    Account and manifest are of one moment: the manifest's `entries` add up to what the account has beside migrated and
    kept. The manifest is streamed; memory is bounded, however long it is. The connection, in no transaction yet, is for
    this alone.
    """
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    with translated_errors(), connection.transaction():
        connection.execute(statement("report_settings"), {"value": "off"})
        rows = connection.execute(statement("read_report"), {"migration": migration}).fetchall()
        connection.execute(statement("report_settings"), {"value": "on"})
        account = Account(migration, tuple(_read_table(row) for row in rows))
        lines = 0
        if manifest is not None:
            for line in _read_manifest(connection, migration):
                manifest.write(json.dumps(line, ensure_ascii=False, default=datetime.isoformat) + "\n")
                lines += 1
    return account, lines


def _is_later(table: TableAccount, moment: datetime | None) -> bool:
    return moment is None or (table.finished_at is not None and table.finished_at > moment)


def _read_table(row: dict[str, Any]) -> TableAccount:
    mine = {name: row.pop(name) for name in _OWN}
    return TableAccount(row.pop("queue_name"), row.pop("label"), Counts(**row), **mine)


def _read_manifest(connection: Connection, migration: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of the manifest; what a line has nothing to say of is left out."""
    with connection.cursor(name="rowferry_manifest") as cursor:
        cursor.itersize = FETCHED_AT_ONCE
        cursor.execute(statement("read_manifest"), {"migration": migration})
        for row in cursor:
            yield {name: value for name, value in row.items() if value is not None}
