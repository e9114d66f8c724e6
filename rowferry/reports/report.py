"""The report of a migration: the outcome of every entry, by queue and table, and the unfinished ones."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Literal, TextIO

from psycopg import IsolationLevel

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import PlanError, UsageError
from rowferry.formatting import format_json
from rowferry.keys import Form
from rowferry.plan_file import parse_plan
from rowferry.queues import find_queue
from rowferry.reports.chain import read_chain
from rowferry.reports.coverage import Coverage, read_coverage
from rowferry.reports.progress import Counts
from rowferry.reports.state import NOT_STORED, MigrationState, read_state

_OWN = ("attempts", "is_repeated", "started_at", "finished_at", "parked_batches", "parked_entries")
LEGACY_AGAIN = "reverted, none migrated since: legacy again."
"""What is said of the rows of `Report.reverted`."""
RowKind = Literal["move", "stay", "none"]
"""What becomes of the rows of a part of a plan; an [[objects]] has none."""
FETCHED_AT_ONCE = 2_000
"""Lines of the manifest in memory at once."""


@dataclass(frozen=True, slots=True)
class TableReport:
    """What one queue did with one table's entries."""

    queue: str
    label: str
    counts: Counts
    attempts: int
    is_repeated: bool
    """Whether there were several passes over the entries; `counts` may have one entry several times."""
    started_at: datetime | None
    finished_at: datetime | None
    parked_batches: int = 0
    """Batches set to ERROR by hand, not by an attempt."""
    parked_entries: int = 0
    """Their entries without an outcome; `counts.waiting` includes them."""

    @property
    def waiting(self) -> int:
        """Return the waiting entries that workers will process, without parked ones."""
        return self.counts.waiting - self.parked_entries

    @property
    def outcomes(self) -> dict[str, int]:
        """Return all entries by outcome, waiting and parked included; the sum is `counts.entries`."""
        unfinished = {"waiting": self.waiting, "parked": self.parked_entries}
        return unfinished | {str(name): count for name, count in self.counts.outcomes.items()}

    @property
    def duration(self) -> timedelta | None:
        """Return the time from the first attempt's start to the last attempt's end; None before that."""
        return find_time_between(self.started_at, self.finished_at)

    def as_document(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        counts, duration = self.counts, self.duration
        return {
            "queue": self.queue,
            "entries_of": self.label,
            "entries": counts.entries,
            "outcomes": self.outcomes,
            "batches": {"init": counts.batches_init, "done": counts.batches_done, "error": counts.batches_error},
            "batches_parked": self.parked_batches,
            "attempts": self.attempts,
            "several_passes": self.is_repeated,
            "bytes": counts.bytes,
            "started_at": self.started_at and self.started_at.isoformat(),
            "finished_at": self.finished_at and self.finished_at.isoformat(),
            "seconds": None if duration is None else duration.total_seconds(),
            "balances": counts.balances,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The outcomes of one migration so far."""

    migration: str
    tables: tuple[TableReport, ...] = field(default_factory=tuple[TableReport, ...])
    """By queue, in the order of their chain."""
    kinds: Mapping[str, RowKind] = field(default_factory=dict[str, RowKind])
    """What becomes of the rows of each part of the plan, by label."""
    coverage: Coverage = field(default_factory=Coverage)
    """What the plan leaves behind."""
    stands: MigrationState | None = None
    """How the migration stands; None: the database does not have it."""

    @property
    def copies_alone(self) -> bool:
        """Whether no row of some part moves, so that queues speak of objects alone where they speak of all."""
        return any(kind != "move" for kind in self.kinds.values())

    def kind_of(self, table: "TableReport") -> RowKind:
        """Return what becomes of the rows of a table; of one that the plan no longer has, they move."""
        return self.kinds.get(table.label, "move")

    @property
    def queues(self) -> dict[str, list[TableReport]]:
        """Return the tables by queue, in the order of the chain."""
        return {name: list(tables) for name, tables in groupby(self.tables, key=lambda table: table.queue)}

    @property
    def balances(self) -> bool:
        """Return whether the outcomes add up, for every table."""
        return all(table.counts.balances for table in self.tables)

    @property
    def settled(self) -> bool:
        """Return whether no batch waits or is in ERROR."""
        return not any(table.counts.batches_init or table.counts.batches_error for table in self.tables)

    @property
    def reverted(self) -> dict[str, int]:
        """Return the rows by table that were put back to their legacy form, where nothing has moved them since."""
        moved_at = {table.label: table.finished_at for table in self.tables if gives_form(table.queue) == "production"}
        return {
            table.label: table.counts.migrated
            for table in self.tables
            if gives_form(table.queue) == "legacy"
            and table.counts.migrated
            and _is_later(table, moved_at.get(table.label))
        }

    def as_document(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return {
            "migration": self.migration,
            **(self.stands.as_document() if self.stands else NOT_STORED),
            "settled": self.settled,
            "reverted": self.reverted,
            "balances": self.balances,
            "left_behind": self.coverage.as_document(),
            "queues": list(self.queues),
            "tables": [table.as_document() | {"rows": self.kind_of(table)} for table in self.tables],
        }


def find_time_between(began_at: datetime | None, ended_at: datetime | None) -> timedelta | None:
    """Return how long something took; None where a time is not known, or where the clock was set back meanwhile."""
    if began_at is None or ended_at is None or ended_at < began_at:
        return None
    return ended_at - began_at


@contextmanager
def open_snapshot(connection: Connection) -> Generator[None]:
    """Read everything of one moment: in one transaction. The connection must be idle and is used for this alone."""
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    with translated_errors(), connection.transaction():
        yield


def read_tables(connection: Connection, migration: str) -> Report:
    """Return the report of a migration; within `open_snapshot`."""
    connection.execute(statement("report_settings"), {"value": "off"})
    rows = connection.execute(statement("read_report"), {"migration": migration}).fetchall()
    connection.execute(statement("report_settings"), {"value": "on"})
    order = [status.queue for status in read_chain(connection, migration)]
    tables = sorted((_read_table(row) for row in rows), key=lambda table: order.index(table.queue))
    return Report(
        migration,
        tuple(tables),
        _read_kinds(connection, migration),
        read_coverage(connection, migration),
        read_state(connection, migration),
    )


def write_manifest(connection: Connection, migration: str, manifest: TextIO) -> int:
    """Write the manifest and return how many lines it has; within `open_snapshot`. Its memory is bounded."""
    lines = 0
    for line in _read_manifest(connection, migration):
        manifest.write(format_json(line, default=datetime.isoformat) + "\n")
        lines += 1
    return lines


def _read_kinds(connection: Connection, migration: str) -> dict[str, RowKind]:
    """Return what becomes of rows by label; nothing of a plan of an earlier version that cannot be read."""
    row = connection.execute(statement("load_plan"), {"migration": migration}).fetchone()
    if row is None:
        return {}
    try:
        plan = parse_plan(row["plan"], f"of migration {migration}")
    except PlanError:
        return {}
    kinds: dict[str, RowKind] = {entries.label: entries.rows for entries in plan.entries}
    for objects in plan.objects:
        kinds[objects.label] = "none"
    return kinds


def gives_form(queue: str) -> Form | None:
    """Return the form that a queue gives to rows; None: it gives none, or is not known here."""
    try:
        return find_queue(queue).gives_form
    except UsageError:
        return None


def _is_later(table: TableReport, moment: datetime | None) -> bool:
    return moment is None or (table.finished_at is not None and table.finished_at > moment)


def _read_table(row: dict[str, Any]) -> TableReport:
    mine = {name: row.pop(name) for name in _OWN}
    return TableReport(row.pop("queue_name"), row.pop("label"), Counts(**row), **mine)


def _read_manifest(connection: Connection, migration: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of the manifest, without null values."""
    with connection.cursor(name="rowferry_manifest") as cursor:
        cursor.itersize = FETCHED_AT_ONCE
        cursor.execute(statement("read_manifest"), {"migration": migration})
        for row in cursor:
            yield {name: value for name, value in row.items() if value is not None}
