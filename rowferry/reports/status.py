"""The status of the data: objects by bucket, entries by form of key, batches by queue and status, the end."""

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.db.schema import check_version
from rowferry.db.statements import statement
from rowferry.plan import Plan, SideName
from rowferry.progress import OnProgress, ignore_progress
from rowferry.reports.chain import QueueStatus, choose_queues, read_chain
from rowferry.reports.coverage import Coverage, read_coverage
from rowferry.reports.pause import find_pause
from rowferry.reports.standby import describe_standby_wait
from rowferry.reports.state import NOT_STORED, MigrationState, read_state
from rowferry.reports.unusable import Unusable, find_unusable
from rowferry.s3.listings.counts import WITHIN, ObjectCount, count_objects_meanwhile


@dataclass(frozen=True, slots=True)
class EntryCounts:
    """The entries of one table, or of all, by the form of their key."""

    label: str
    legacy: int
    production: int
    unexpected: int
    stay: int = 0
    """Of rows that stay: no column says where their objects are."""
    last_pass: str | None = None
    """The newest pass over rows that stay, in words."""

    @property
    def total(self) -> int:
        """Return all entries."""
        return self.legacy + self.production + self.unexpected + self.stay


@dataclass(frozen=True, slots=True)
class DataStatus:
    """What `rowferry status` shows of one migration."""

    migration: str
    objects: dict[SideName, ObjectCount] | None
    """Objects by bucket; None if not counted."""
    tables: tuple[EntryCounts, ...]
    queues: tuple[QueueStatus, ...] = ()
    """The queues that are shown, in the order of their chain; none before the first enqueue."""
    stands: MigrationState | None = None
    """The migration's state, of all its queues; None before the first enqueue."""
    workers: int = 0
    """Workers with a recent heartbeat."""
    paused: str | None = None
    """`paused since ...`, or None."""
    unusable: tuple[Unusable, ...] = ()
    """Live workers that cannot work on it."""
    standby_wait: str = ""
    """How many commits wait for a synchronous standby, in words; empty: none."""
    initialised: bool = True
    """Whether the database has the schema `rowferry`."""
    coverage: Coverage = field(default_factory=Coverage)
    """What the plan leaves behind, as `check` or `migrate` saw it last."""

    @property
    def entries(self) -> EntryCounts:
        """Return the entries of all tables together."""
        tables = self.tables
        return EntryCounts(
            "all",
            sum(table.legacy for table in tables),
            sum(table.production for table in tables),
            sum(table.unexpected for table in tables),
            sum(table.stay for table in tables),
        )

    def as_document(self) -> dict[str, Any]:
        """Return the status as plain data, for JSON."""
        return {
            "migration": self.migration,
            "initialised": self.initialised,
            "paused": self.paused,
            "standby_wait": self.standby_wait or None,
            "unusable": [{"workers": one.workers, "queue": one.queue, "error": one.error} for one in self.unusable],
            "objects": self.objects and {side: count.number for side, count in self.objects.items()},
            "objects_below": self.objects and {side: dict(count.below) for side, count in self.objects.items()},
            "objects_complete": self.objects and all(count.is_complete for count in self.objects.values()),
            "entries": _as_document(self.entries),
            "tables": {table.label: _as_document(table) for table in self.tables},
            "passes": {table.label: table.last_pass for table in self.tables if table.last_pass is not None},
            "queues": [queue.as_document() for queue in self.queues],
            **(self.stands.as_document() if self.stands else NOT_STORED),
            "left_behind": self.coverage.as_document(),
            "workers": self.workers,
        }


def read_data_status(
    connection: Connection,
    plan: Plan,
    passes_of: str,
    *,
    queue: str | None = None,
    count_objects: bool = True,
    within: timedelta | None = WITHIN,
    on_progress: OnProgress = ignore_progress,
) -> DataStatus:
    """Count entries, batches by queue and, with `count_objects`, the objects of both buckets; write nothing.

    `passes_of`: the queue whose passes over rows that stay are told; `queue`: only the batches of this one. Buckets are
    listed while the tables are scanned, for so long at most; `within` None: to their end. Raises UsageError when a
    table or a bucket cannot be read or there is no such queue, DatabaseUnavailable when the connection is lost.
    """
    if not (count_objects and plan.has_both_sides):
        return _read_database(connection, plan, passes_of, queue, on_progress)
    with count_objects_meanwhile(plan, on_progress, within) as read_objects:
        status = _read_database(connection, plan, passes_of, queue, on_progress)
        return replace(status, objects=read_objects())


def _read_database(
    connection: Connection, plan: Plan, passes_of: str, queue: str | None, on_progress: OnProgress
) -> DataStatus:
    """Return the status without its objects."""
    on_progress("counting entries")
    with translated_errors():
        tables = tuple(_count_entries(connection, plan, passes_of))
        initialised = bool(fetch_one(connection, statement("has_schema"))["has_schema"])
        if not initialised:
            return DataStatus(plan.name, None, tables, initialised=False)
        check_version(connection)
        chain = read_chain(connection, plan.name)
        return DataStatus(
            plan.name,
            None,
            tables,
            choose_queues(chain, queue, plan.name),
            read_state(connection, plan.name),
            fetch_one(connection, statement("count_live_workers"))["workers"],
            find_pause(connection, plan.name),
            find_unusable(connection, plan.name),
            describe_standby_wait(connection),
            coverage=read_coverage(connection, plan.name),
        )


def _count_entries(connection: Connection, plan: Plan, queue: str) -> Generator[EntryCounts]:
    for entries in plan.entries:
        queries = EntryQueries.of(connection, entries)
        row = fetch_one(connection, queries.compose("count_entries"), queries.parameters())
        if entries.rows == "stay":
            last_pass = _describe_last_pass(connection, plan, queue, entries.label) if plan.has_both_sides else None
            yield EntryCounts(entries.label, 0, 0, row["unexpected"], row["legacy"], last_pass)
        else:
            yield EntryCounts(entries.label, **row)


def _describe_last_pass(connection: Connection, plan: Plan, queue: str, label: str) -> str:
    """Return which pass was the last over entries whose rows stay, and where the next one begins."""
    if not fetch_one(connection, statement("has_schema"))["has_schema"]:
        return "no pass yet"
    chosen = {"name": plan.name, "label": label, "queue": queue}
    row = connection.execute(statement("find_last_pass", waits=statement("pass_waits")), chosen).fetchone()
    if row is None:
        return "no pass yet"
    began = f"pass {row['number']} began at {row['began_at']:%Y-%m-%d %H:%M:%S %Z}"
    if row["waits"]:
        return f"{began} and goes on"
    if row["watermark"] is None:
        return f"{began}; the next takes all rows"
    return f"{began}; what changed since {row['watermark']:%H:%M:%S} is for the next"


def _as_document(counts: EntryCounts) -> dict[str, Any]:
    forms = {"legacy": counts.legacy, "production": counts.production, "unexpected": counts.unexpected}
    if counts.stay or counts.last_pass is not None:
        forms |= {"stay": counts.stay}
    return {**forms, "total": counts.total}
