"""Prints the status of the data as tables."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rowferry.batch import Outcome
from rowferry.formatting import count_entries, format_duration, format_rate, show_text
from rowferry.reports.chain import QueueStatus
from rowferry.reports.progress import Counts
from rowferry.reports.state import show_state
from rowferry.reports.status import DataStatus
from rowferry.s3.listings.counts import ObjectCount

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
        if status.objects is not None and not all(count.is_complete for count in status.objects.values()):
            console.print("≥: the count was given up. `rowferry status --objects` counts all of them.", soft_wrap=True)
    if status.entries.unexpected:
        console.print(UNEXPECTED, markup=False, soft_wrap=True)
    for counts in status.tables:
        if counts.last_pass is not None:
            console.print(show_text(f"{counts.label}: {counts.last_pass}"), markup=False, soft_wrap=True)
    if not status.initialised:
        console.print(NO_SCHEMA, soft_wrap=True)
        return
    if status.queues:
        _print_queues(status, console)
    else:
        console.print("Batches: none, nothing was enqueued.", soft_wrap=True)
    _print_hindrances(status, console)
    console.print(_describe_activity(status), markup=False, soft_wrap=True)
    if words := status.coverage.as_sentence():
        console.print(show_text(words), markup=False, soft_wrap=True)


def _print_hindrances(status: DataStatus, console: Console) -> None:
    """Print why batches do not go on: what the state says, and workers that cannot work on the migration."""
    if status.standby_wait:
        console.print(f"{status.standby_wait}.", markup=False, soft_wrap=True)
    stands = status.stands
    if stands is not None and stands.since is not None and stands.what_to_do and stands.state != "done":
        words = stands.describe(f"{stands.since:%Y-%m-%d %H:%M:%S %Z}")
        console.print(show_text(words), markup=False, soft_wrap=True)
    for unusable in status.unusable:
        console.print(show_text(unusable), markup=False, soft_wrap=True)


def _print_queues(status: DataStatus, console: Console) -> None:
    """Print the batches and outcomes of one queue, or a line for each of several."""
    several = len(status.queues) > 1
    which = "by queue" if several else f"in the queue {status.queues[0].queue}"
    what = f"Batches and entries of migration {status.migration}, {which}"
    console.print(what, style="bold", markup=False, soft_wrap=True)
    console.print(_tabulate_queues(status.queues) if several else _tabulate_batches(status.queues[0].counts, console))


def _describe_activity(status: DataStatus) -> str:
    """Return the state, live workers, the rate of the slowest queue, and the end of the last, in one line."""
    stands = status.stands
    state = stands and stands.state
    partly = ", for a part of the legacy bucket" if state == "done" and status.coverage.left else ""
    parts = [f"State: {show_state(state)}{partly}"] if state else []
    idle = ", and none takes its batches" if status.workers and state == "no_workers" else ""
    parts.append(f"Workers alive: {status.workers:,}{idle}")
    slowest = next((queue for queue in status.queues if queue.is_slowest), None)
    if slowest is not None and slowest.rate:
        name = f"{slowest.queue}, the slowest: " if len(status.queues) > 1 else ""
        parts.append(f"{name}{format_rate(slowest.rate)} entries/s")
    in_hand = sum(queue.counts.in_hand for queue in status.queues)
    if in_hand:
        parts.append(f"{count_entries(in_hand)} done in open batches")
    if stands is not None and stands.time_left is not None:
        parts.append(f"{format_duration(stands.time_left)} left")
    if state == "done":
        parts.append("all queues are done")
    return " · ".join(parts)


def _tabulate_entries(status: DataStatus, console: Console) -> Table:
    """Return a column per form: objects by bucket, then entries by table, then their sum if there are several."""
    stays = any(counts.stay or counts.last_pass is not None for counts in status.tables)
    table = _new_table(console, "", "legacy", "production", *(["stay"] if stays else []), "unexpected", "total")
    if status.objects is not None:
        legacy, production = status.objects["legacy"], status.objects["production"]
        both = ObjectCount(legacy.number + production.number, legacy.is_complete and production.is_complete)
        blank = [""] * (2 if stays else 1)
        for label in legacy.below:
            shown = [side.show(side.below[label]) for side in (legacy, production)]
            table.add_row(Text(show_text(f"objects {label}")), *shown, *blank, "")
        table.add_row("all objects" if legacy.below else "objects", str(legacy), str(production), *blank, str(both))
        table.add_section()
    rows = [(f"entries {counts.label}", counts) for counts in status.tables]
    rows += [("all entries", status.entries)] if len(rows) > 1 else []
    for name, counts in rows:
        staying = [counts.stay] if stays else []
        numbers = (counts.legacy, counts.production, *staying, counts.unexpected, counts.total)
        table.add_row(Text(show_text(name)), *(f"{number:,}" for number in numbers))
    return table


def _tabulate_queues(queues: Sequence[QueueStatus]) -> Table:
    """Return a line for each queue; within 80 columns, unless names are longer than 17 letters."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    longest = max((len(queue.queue) for queue in queues), default=0)
    table.add_column("queue", overflow="fold", min_width=min(17, longest))
    for heading in ("INIT", "DONE", "ERROR", "entries", "waiting", "unsettled"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("state", max_width=8 if longest > 9 else None)  # beside long names, a word a line
    for queue in queues:
        counts = queue.counts
        batches = (counts.batches_init, counts.batches_done, counts.batches_error)
        numbers = (*batches, counts.entries, counts.waiting, counts.unsettled)
        table.add_row(queue.queue, *(f"{number:,}" for number in numbers), queue.shown_state)
    return table


def _tabulate_batches(counts: Counts, console: Console) -> Table:
    """Return batches by status, then entries by outcome."""
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
