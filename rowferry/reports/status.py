"""The status of the data: objects by bucket, entries by form of key, batches by status, current activity."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from rowferry.batch import Outcome
from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.db.statements import statement
from rowferry.formatting import format_duration
from rowferry.plan import Plan, SideName
from rowferry.reports.pause import find_pause
from rowferry.reports.progress import Counts, read_counts
from rowferry.s3.listing import WITHIN, ObjectCount, OnProgress, count_objects_meanwhile, ignore_progress


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
class Activity:
    """Current activity."""

    workers: int = 0
    """Workers with a recent heartbeat."""
    rate: float = 0.0
    """Entries per second, over the last minute."""
    time_left: timedelta | None = None
    """None while the rate is 0."""


@dataclass(frozen=True, slots=True)
class DataStatus:
    """What `rowferry status` shows of one migration."""

    migration: str
    objects: dict[SideName, ObjectCount] | None
    """Objects by bucket; None if not counted."""
    tables: tuple[EntryCounts, ...]
    counts: Counts
    """Batches and outcomes; all zero before the first enqueue."""
    activity: Activity
    paused: str | None
    """`paused since ...`, or None."""
    initialised: bool
    """Whether the database has the schema `rowferry`."""

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
        counts, left = self.counts, self.activity.time_left
        return {
            "migration": self.migration,
            "initialised": self.initialised,
            "paused": self.paused,
            "objects": self.objects and {side: count.number for side, count in self.objects.items()},
            "objects_below": self.objects and {side: dict(count.below) for side, count in self.objects.items()},
            "objects_complete": self.objects and all(count.is_complete for count in self.objects.values()),
            "entries": _as_document(self.entries),
            "tables": {table.label: _as_document(table) for table in self.tables},
            "passes": {table.label: table.last_pass for table in self.tables if table.last_pass is not None},
            "batches": {
                "init": counts.batches_init,
                "done": counts.batches_done,
                "error": counts.batches_error,
                "total": counts.batches,
            },
            "outcomes": {"waiting": counts.waiting, **{str(name): count for name, count in counts.outcomes.items()}},
            "bytes": counts.bytes,
            "workers": self.activity.workers,
            "entries_per_second": self.activity.rate,
            "seconds_left": None if left is None else left.total_seconds(),
        }


def read_data_status(
    connection: Connection,
    plan: Plan,
    queue: str,
    *,
    count_objects: bool = True,
    to_the_end: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> DataStatus:
    """Count entries, batches of a queue and, with `count_objects`, the objects of both buckets; write nothing.

    Buckets are listed while the tables are scanned, for WITHIN at most unless `to_the_end` is set. Raises UsageError
    when a table or a bucket cannot be read, DatabaseUnavailable when the connection is lost.
    """
    if not count_objects:
        return _read_database(connection, plan, queue, on_progress)
    with count_objects_meanwhile(plan, on_progress, None if to_the_end else WITHIN) as read_objects:
        status = _read_database(connection, plan, queue, on_progress)
        return replace(status, objects=read_objects())


def _read_database(connection: Connection, plan: Plan, queue: str, on_progress: OnProgress) -> DataStatus:
    """Return the status without its objects."""
    on_progress("counting entries")
    with translated_errors():
        tables = tuple(_count_entries(connection, plan, queue))
        initialised = bool(fetch_one(connection, statement("has_schema"))["has_schema"])
        if not initialised:
            return DataStatus(plan.name, None, tables, Counts(), Activity(), None, initialised)
        counts = read_counts(connection, plan.name, queue)
        now = fetch_one(connection, statement("read_activity"), {"migration": plan.name, "queue": queue})
        paused = find_pause(connection, plan.name)
    activity = Activity(**now, time_left=timedelta(seconds=counts.waiting / now["rate"]) if now["rate"] else None)
    return DataStatus(plan.name, None, tables, counts, activity, paused, initialised)


def _count_entries(connection: Connection, plan: Plan, queue: str) -> Generator[EntryCounts]:
    for entries in plan.entries:
        queries = EntryQueries.of(connection, entries)
        row = fetch_one(connection, queries.compose("count_entries"), queries.parameters())
        if entries.rows == "stay":
            last_pass = _describe_last_pass(connection, plan, queue, entries.label)
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


def print_data_status(status: DataStatus, console: Console) -> None:
    """Print the status as tables: lines and colours on a terminal, bare columns elsewhere."""
    console.print("Current data status", style="bold")
    console.print(_tabulate_entries(status, console))
    for counts in status.tables:
        if counts.last_pass is not None:
            console.print(f"{counts.label}: {counts.last_pass}", markup=False, soft_wrap=True)
    if not status.initialised:
        console.print("Batches: none, the database has no schema rowferry. Run `rowferry init`.", soft_wrap=True)
        return
    if status.counts.batches:
        console.print(f"Batches of migration {status.migration}", style="bold", markup=False, soft_wrap=True)
        console.print(_tabulate_batches(status, console))
    else:
        console.print("Batches: none, nothing was enqueued.", soft_wrap=True)
    if status.paused:
        paused = f"Migration {status.migration} is {status.paused}. To continue: rowferry resume --migration "
        console.print(f"{paused}{status.migration}", markup=False, soft_wrap=True)
    activity = status.activity
    line = f"Workers alive: {activity.workers:,}"
    if activity.rate:
        line += f" · {activity.rate:,.0f} entries/s"
    if activity.time_left is not None and status.counts.waiting:
        line += f" · {format_duration(activity.time_left)} left"
    console.print(line, soft_wrap=True)


def _tabulate_entries(status: DataStatus, console: Console) -> Table:
    """Return a column per form: objects by bucket, then entries by table, then their sum if there are several."""
    stays = any(counts.last_pass is not None for counts in status.tables)
    table = _new_table(console, "", "legacy", "production", *(["stay"] if stays else []), "unexpected", "total")
    if status.objects is not None:
        legacy, production = status.objects["legacy"], status.objects["production"]
        both = ObjectCount(legacy.number + production.number, legacy.is_complete and production.is_complete)
        blank = [""] * (2 if stays else 1)
        for label in legacy.below:
            shown = [side.show(side.below[label]) for side in (legacy, production)]
            table.add_row(f"objects {label}", *shown, *blank, "")
        table.add_row("all objects" if legacy.below else "objects", str(legacy), str(production), *blank, str(both))
        table.add_section()
    rows = [(f"entries {counts.label}", counts) for counts in status.tables]
    rows += [("all entries", status.entries)] if len(rows) > 1 else []
    for name, counts in rows:
        staying = [counts.stay] if stays else []
        numbers = (counts.legacy, counts.production, *staying, counts.unexpected, counts.total)
        table.add_row(name, *(f"{number:,}" for number in numbers))
    return table


def _tabulate_batches(status: DataStatus, console: Console) -> Table:
    """Return batches by status, then entries by outcome."""
    counts = status.counts
    table = _new_table(console, "", "", "")
    table.columns[1].justify = "left"
    table.add_row("batches", "INIT", f"{counts.batches_init:,}")
    table.add_row("", "DONE", f"{counts.batches_done:,}")
    table.add_row("", "ERROR", f"{counts.batches_error:,}", end_section=True)
    named = [("waiting", counts.waiting), *counts.outcomes.items()]
    shown = [(name, count) for name, count in named if count or name in {"waiting", Outcome.MIGRATED, Outcome.FAILED}]
    for number, (name, count) in enumerate(shown):
        table.add_row("" if number else "entries", str(name), f"{count:,}")
    return table


def _new_table(console: Console, first: str, *others: str) -> Table:
    """Return an empty table; all columns but the first are numeric."""
    lines = box.ROUNDED if console.is_terminal else None
    table = Table(box=lines, pad_edge=console.is_terminal, show_header=any(others))
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
