"""The status of the data: objects by bucket, entries by form of key, batches by queue and status, the end."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from psycopg.rows import DictRow

from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.db.schema import check_version
from rowferry.db.statements import statement
from rowferry.plan import Plan, SideName
from rowferry.progress import OnProgress, ignore_progress
from rowferry.reports.coverage import Coverage, read_coverage
from rowferry_cli.status.chain import read_chain
from rowferry_cli.status.counts import WITHIN, ObjectCount, count_objects_of
from rowferry_cli.status.standby import describe_standby_wait
from rowferry_cli.status.state import NOT_STORED, read_state
from rowferry_cli.status.unusable import Unusable, find_unusable

FORMS = ("legacy", "production", "stay", "unexpected", "total")
"""The counts of a table's entries; `stay`: rows of which no column says where their objects are."""


@dataclass(frozen=True, slots=True)
class DataStatus:
    """What `rowferry status` shows of one migration."""

    migration: str
    objects: dict[SideName, ObjectCount] | None
    """Objects by bucket; None if not counted."""
    tables: Sequence[DictRow]
    """A row of FORMS for each table, with its `label`."""
    queues: Sequence[DictRow] = ()
    """The rows of rowferry.queue_status that are shown, in the order of their chain; none before the first enqueue."""
    state: DictRow = field(default_factory=lambda: dict(NOT_STORED))
    """The migration's row of rowferry.migration_state."""
    workers: int = 0
    """Workers with a recent heartbeat."""
    unusable: tuple[Unusable, ...] = ()
    """Live workers that cannot work on it."""
    standby_wait: str = ""
    """How many commits wait for a synchronous standby, in words; empty: none."""
    initialised: bool = True
    """Whether the database has the schema `rowferry`."""
    coverage: Coverage = field(default_factory=Coverage)
    """What the plan leaves behind, as `check` or `migrate` saw it last."""

    @property
    def entries(self) -> DictRow:
        """Return the entries of all tables together."""
        return {form: sum(table[form] for table in self.tables) for form in FORMS}

    def as_document(self) -> dict[str, Any]:
        """Return the status as plain data, for JSON."""
        return {
            **self.state,
            "migration": self.migration,
            "initialised": self.initialised,
            "standby_wait": self.standby_wait or None,
            "unusable": [{"workers": one.workers, "queue": one.queue, "error": one.error} for one in self.unusable],
            "objects": self.objects and {side: count.number for side, count in self.objects.items()},
            "objects_complete": self.objects and all(count.is_complete for count in self.objects.values()),
            "entries": self.entries,
            "tables": self.tables,
            "queues": self.queues,
            "left_behind": self.coverage.as_document(),
            "workers": self.workers,
        }


def read_data_status(
    connection: Connection,
    plan: Plan,
    *,
    queue: str | None = None,
    count_objects: bool = True,
    within: timedelta | None = WITHIN,
    on_progress: OnProgress = ignore_progress,
) -> DataStatus:
    """Count entries, batches by queue and, with `count_objects`, the objects of both buckets; write nothing.

    `queue`: only the batches of this one. Buckets are listed for so long at most; `within` None: to their end.
    Raises UsageError when a table or a bucket cannot be read, DatabaseUnavailable when the connection is lost.
    """
    status = _read_database(connection, plan, queue, on_progress)
    counts_objects = count_objects and plan.has_both_sides
    return replace(status, objects=count_objects_of(plan, on_progress, within)) if counts_objects else status


def _read_database(connection: Connection, plan: Plan, queue: str | None, on_progress: OnProgress) -> DataStatus:
    """Return the status without its objects."""
    on_progress("counting entries")
    with translated_errors():
        tables = list(_count_entries(connection, plan))
        if not _has_schema(connection):
            return DataStatus(plan.name, None, tables, initialised=False)
        check_version(connection)
        rows = read_chain(connection, plan.name)
        return DataStatus(
            plan.name,
            None,
            tables,
            [row for row in rows if (row["batches"] if queue is None else row["queue"] == queue)],
            read_state(connection, plan.name),
            fetch_one(connection, statement("count_live_workers"))["workers"],
            find_unusable(connection, plan.name),
            describe_standby_wait(connection),
            coverage=read_coverage(connection, plan.name),
        )


def _has_schema(connection: Connection) -> bool:
    return bool(fetch_one(connection, statement("has_schema"))["has_schema"])


def _count_entries(connection: Connection, plan: Plan) -> Generator[DictRow]:
    for entries in plan.entries:
        queries = EntryQueries.of(connection, entries)
        row: DictRow = {"label": entries.label, "stay": 0}
        row |= fetch_one(connection, queries.compose("count_entries"), queries.parameters())
        row["total"] = row["legacy"] + row["production"] + row["unexpected"]
        if entries.rows == "stay":
            row |= {"legacy": 0, "production": 0, "stay": row["legacy"]}
            row["total"] = row["unexpected"] + row["stay"]
        yield row
