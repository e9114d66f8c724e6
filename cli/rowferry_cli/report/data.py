"""The report of a migration: the outcome of every entry, by queue and table, and the unfinished ones."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TextIO

from psycopg import IsolationLevel
from psycopg.rows import DictRow

from rowferry.batch import Outcome
from rowferry.db.connection import Connection, set_local, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import PlanError, UsageError
from rowferry.formatting import format_json
from rowferry.keys import Form
from rowferry.plan_file import parse_plan
from rowferry.queues import find_queue
from rowferry.reports.coverage import Coverage, read_coverage
from rowferry_cli.status.chain import read_chain
from rowferry_cli.status.state import NOT_STORED, read_state

FETCHED_AT_ONCE = 2_000
"""Lines of the manifest in memory at once."""
COUNTED = ("waiting", "parked", *map(str, Outcome))
"""The columns of a table whose sum is its entries."""


@dataclass(frozen=True, slots=True)
class Report:
    """The outcomes of one migration so far."""

    migration: str
    state: DictRow = field(default_factory=lambda: dict(NOT_STORED))
    """Its row of rowferry.migration_state."""
    queues: Sequence[DictRow] = ()
    """The rows of rowferry.queue_status, in the order of the chain."""
    tables: Sequence[DictRow] = ()
    """A row of `read_report` for each queue and table, in the same order. `rows` says what becomes of its rows: they
    `move` or `stay`, or there are `none`."""
    coverage: Coverage = field(default_factory=Coverage)
    """What the plan leaves behind."""

    @property
    def by_queue(self) -> dict[str, list[DictRow]]:
        """Return the tables by queue, in the order of the chain; queues without batches have none."""
        names = dict.fromkeys(table["queue"] for table in self.tables)
        return {name: [table for table in self.tables if table["queue"] == name] for name in names}

    @property
    def balances(self) -> bool:
        """Return whether the outcomes add up, for every table."""
        return all(table["balances"] for table in self.tables)

    @property
    def settled(self) -> bool:
        """Return whether no batch waits or is in ERROR."""
        return not any(table["batches_init"] or table["batches_error"] for table in self.tables)

    @property
    def reverted(self) -> dict[str, int]:
        """Return the rows by table that were put back to their legacy form, where nothing has moved them since."""
        moved_at = {table["label"]: table["finished_at"] for table in self.tables_that_give("production")}
        return {
            table["label"]: table["migrated"]
            for table in self.tables_that_give("legacy")
            if table["migrated"] and _is_later(table["finished_at"], moved_at.get(table["label"]))
        }

    def tables_that_give(self, form: Form) -> list[DictRow]:
        """Return the tables of the queues that give this form to rows; of queues that are installed here."""
        return [table for table in self.tables if _gives_form(table["queue"]) == form]

    def as_document(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return {
            **self.state,
            "migration": self.migration,
            "settled": self.settled,
            "reverted": self.reverted,
            "balances": self.balances,
            "left_behind": self.coverage.as_document(),
            "queues": self.queues,
            "tables": self.tables,
        }


@contextmanager
def open_snapshot(connection: Connection) -> Generator[None]:
    """Read everything of one moment: in one transaction. The connection must be idle and is used for this alone."""
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    with translated_errors(), connection.transaction():
        yield


def read_tables(connection: Connection, migration: str) -> Report:
    """Return the report of a migration; within `open_snapshot`."""
    rows = read_in_order(connection, "read_report", {"migration": migration})
    queues = read_chain(connection, migration)
    order = [queue["queue"] for queue in queues]
    kinds = _read_kinds(connection, migration)
    return Report(
        migration,
        read_state(connection, migration),
        queues,
        [
            table | {"rows": kinds.get(table["label"], "move")}
            for table in sorted(rows, key=lambda row: order.index(row["queue"]))
        ],
        read_coverage(connection, migration),
    )


def read_in_order(connection: Connection, name: str, parameters: dict[str, Any]) -> list[DictRow]:
    """Return the rows of a query that joins the queue and the whole ledger, in the order of their indexes."""
    # 4 s of CPU instead of 25 for six million batches and twelve million attempts.
    set_local(connection, enable_hashjoin="off", enable_seqscan="off", enable_sort="off")
    rows = connection.execute(statement(name), parameters).fetchall()
    set_local(connection, enable_hashjoin="on", enable_seqscan="on", enable_sort="on")
    return rows


def write_manifest(connection: Connection, migration: str, manifest: TextIO) -> int:
    """Write the manifest and return how many lines it has; within `open_snapshot`. Its memory is bounded."""
    lines = 0
    for line in _read_manifest(connection, migration):
        manifest.write(format_json(line) + "\n")
        lines += 1
    return lines


def _read_kinds(connection: Connection, migration: str) -> dict[str, str]:
    """Return what becomes of rows by label; nothing of a plan of an earlier version that cannot be read."""
    row = connection.execute(statement("load_plan"), {"migration": migration}).fetchone()
    try:
        plan = parse_plan(row["plan"], f"of migration {migration}") if row else None
    except PlanError:
        plan = None
    if plan is None:
        return {}
    return {entries.label: entries.rows for entries in plan.entries} | {one.label: "none" for one in plan.objects}


def _gives_form(queue: str) -> Form | None:
    """Return the form that a queue gives to rows; None: it gives none, or is not known here."""
    try:
        return find_queue(queue).gives_form
    except UsageError:
        return None


def _is_later(moment: datetime | None, than: datetime | None) -> bool:
    return than is None or (moment is not None and moment > than)


def _read_manifest(connection: Connection, migration: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of the manifest, without null values."""
    with connection.cursor(name="rowferry_manifest") as cursor:
        cursor.itersize = FETCHED_AT_ONCE
        cursor.execute(statement("read_manifest"), {"migration": migration})
        for row in cursor:
            yield {name: value for name, value in row.items() if value is not None}
