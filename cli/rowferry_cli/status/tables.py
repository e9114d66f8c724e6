"""Prints the status of the data as tables."""

from collections.abc import Iterator
from datetime import timedelta

from psycopg.rows import DictRow
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rowferry.batch import Outcome
from rowferry.formatting import count_entries, format_duration, format_rate, show_text
from rowferry_cli.status.chain import show_queue_state
from rowferry_cli.status.counts import ObjectCount
from rowferry_cli.status.data import FORMS, DataStatus
from rowferry_cli.status.state import describe_state, show_state

UNEXPECTED = (
    "Unexpected entries are neither legacy nor production by the plan, for example with a null key: they are left "
    "alone."
)
NO_SCHEMA = "Batches: none, the database has no schema rowferry yet: `rowferry init` makes it, or `rowferry migrate`."


def print_data_status(status: DataStatus, console: Console) -> None:
    """Print the status as tables: lines and colours on a terminal, bare columns elsewhere."""
    if status.tables or status.objects is not None:  # else the plan has neither, as one for items alone
        console.print("Current data status", style="bold")
        console.print(_tabulate_entries(status, console))
    _say(console, *_describe_data(status))
    if not status.initialised:
        return
    if status.queues:
        several = len(status.queues) > 1
        which = "by queue" if several else f"in the queue {status.queues[0]['queue']}"
        what = f"Batches and entries of migration {status.migration}, {which}"
        console.print(what, style="bold", markup=False, soft_wrap=True)
        console.print(_tabulate_queues(status) if several else _tabulate_batches(status.queues[0], console))
    _say(console, *_describe_work(status))


def _say(console: Console, *sentences: str) -> None:
    for words in sentences:
        console.print(show_text(words), markup=False, soft_wrap=True)


def _describe_data(status: DataStatus) -> Iterator[str]:
    """Yield what is to be said of the entries and objects."""
    if status.objects is not None and not all(count.is_complete for count in status.objects.values()):
        yield "≥: the count was given up. `rowferry status --objects` counts all of them."
    if status.entries["unexpected"]:
        yield UNEXPECTED
    if not status.initialised:
        yield NO_SCHEMA


def _describe_work(status: DataStatus) -> Iterator[str]:
    """Yield what keeps batches from going on, how the migration stands, and what it leaves behind."""
    if not status.queues:
        yield "Batches: none, nothing was enqueued."
    if status.standby_wait:
        yield f"{status.standby_wait}."
    if status.state["what_to_do"] and status.state["state"] != "done":
        yield describe_state(status.state, f"{status.state['since']:%Y-%m-%d %H:%M:%S %Z}")
    yield from map(str, status.unusable)
    yield _describe_activity(status)
    if words := status.coverage.as_sentence():
        yield words


def _describe_activity(status: DataStatus) -> str:
    """Return the state, live workers, the rate of the slowest queue, and the end of the last, in one line."""
    state = status.state["state"]
    partly = ", for a part of the legacy bucket" if state == "done" and status.coverage.left else ""
    parts = [f"State: {show_state(state)}{partly}"] if state else []
    idle = ", and none takes its batches" if status.workers and state == "no_workers" else ""
    parts.append(f"Workers alive: {status.workers:,}{idle}")
    slowest = next((queue for queue in status.queues if queue["is_slowest"]), None)
    if slowest is not None and slowest["rate_1m"]:
        name = f"{slowest['queue']}, the slowest: " if len(status.queues) > 1 else ""
        parts.append(f"{name}{format_rate(slowest['rate_1m'])} entries/s")
    if in_hand := sum(queue["in_hand"] for queue in status.queues):
        parts.append(f"{count_entries(in_hand)} done in open batches")
    if state == "running" and status.state["seconds_left"] is not None:
        parts.append(f"{format_duration(timedelta(seconds=status.state['seconds_left']))} left")
    if state == "done":
        parts.append("all queues are done")
    return " · ".join(parts)


def _tabulate_entries(status: DataStatus, console: Console) -> Table:
    """Return a column per form: objects by bucket, then entries by table, then their sum if there are several."""
    forms = [form for form in FORMS if form != "stay" or any(t["stay"] for t in status.tables)]
    table = _new_table(console, "", *forms)
    if status.objects is not None:
        legacy, production = status.objects["legacy"], status.objects["production"]
        both = ObjectCount(legacy.number + production.number, legacy.is_complete and production.is_complete)
        blank = [""] * (len(forms) - 3)
        table.add_row("objects", str(legacy), str(production), *blank, str(both))
        table.add_section()
    rows = [(f"entries {row['label']}", row) for row in status.tables]
    rows += [("all entries", status.entries)] if len(rows) > 1 else []
    for name, row in rows:
        table.add_row(Text(show_text(name)), *(f"{row[form]:,}" for form in forms))
    return table


NUMBERS = {"INIT": "batches_init", "DONE": "batches_done", "ERROR": "batches_error"}
"""The columns of batches by status."""


def _tabulate_queues(status: DataStatus) -> Table:
    """Return a line for each queue; within 80 columns, unless names are longer than 17 letters."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    longest = max(len(queue["queue"]) for queue in status.queues)
    table.add_column("queue", overflow="fold", min_width=min(17, longest))
    columns = {**NUMBERS, "entries": "entries", "waiting": "waiting", "unsettled": "unsettled"}
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("state", max_width=8 if longest > 9 else None)  # beside long names, a word a line
    for queue in status.queues:
        numbers = (f"{queue[column]:,}" for column in columns.values())
        table.add_row(queue["queue"], *numbers, show_queue_state(queue, several=True))
    return table


def _tabulate_batches(queue: DictRow, console: Console) -> Table:
    """Return batches by status, then entries by outcome."""
    table = _new_table(console, "", "", "")
    table.columns[1].justify = "left"
    for status, column in NUMBERS.items():
        table.add_row("" if table.row_count else "batches", status, f"{queue[column]:,}", end_section=status == "ERROR")
    always = {"waiting", Outcome.MIGRATED, Outcome.FAILED}
    for name in ("waiting", *Outcome):
        if queue[name] or name in always:
            table.add_row("entries" if name == "waiting" else "", str(name), f"{queue[name]:,}")
    return table


def _new_table(console: Console, first: str, *others: str) -> Table:
    """Return an empty table; all columns but the first are numeric."""
    lines = box.ROUNDED if console.is_terminal else None
    table = Table(box=lines, pad_edge=console.is_terminal, show_header=any(others))
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
