"""Builds the part of each queue: its outcomes in its own words, its tables, its rate. Pure."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from rowferry.batch import Outcome
from rowferry.errors import UsageError
from rowferry.formatting import count, count_batches, format_duration
from rowferry.queues import find_queue
from rowferry.reports.chain import find_meanings
from rowferry.reports.report import Report, TableReport
from rowferry.reports.state import show_state
from rowferry_cli.report.chart import build_chart
from rowferry_cli.report.events import find_pauses
from rowferry_cli.report.facts import BatchFacts, Facts, QueueFacts
from rowferry_cli.report.model import Bar, Cell, Column, QueuePart, Table, Tone
from rowferry_cli.report.wording import write_bytes, write_duration, write_moment, write_share

MOST_TABLES = 50
TONES: Mapping[str, Tone] = {
    "done": "good",
    "need_somebody": "bad",
    "stalled": "bad",
    "no_workers": "bad",
    "paused": "warn",
    "waiting": "warn",
    "running": "busy",
}
UNFINISHED = {
    "waiting": "not settled yet: its batch is waiting or running",
    "parked": "its batch was set to ERROR by hand",
}


def build_queues(facts: Facts) -> list[QueuePart]:
    """Return a part for each queue that has batches, in the order of the chain."""
    known = {queue.queue: queue for queue in facts.queues}
    return [_build_queue(facts, name, tables, known.get(name)) for name, tables in facts.report.queues.items()]


def _build_queue(facts: Facts, name: str, tables: Sequence[TableReport], queue: QueueFacts | None) -> QueuePart:
    sums = add_outcomes(tables)
    span = facts.spans.get(name)
    intervals = [interval for interval in facts.intervals if interval.queue == name]
    return QueuePart(
        name=name,
        summary=find_summary(name),
        state=describe_state(facts, queue) if queue else "",
        tone=TONES.get(queue.state, "calm") if queue else "calm",
        bars=list_bars(sums),
        outcomes=tabulate_outcomes(name, sums, find_meanings(name, alone=facts.report.copies_alone)),
        tables=tabulate_tables(name, tables, facts.report) if len(tables) > 1 else None,
        chart=build_chart(span, intervals, find_pauses(facts.events, name)) if span and intervals else None,
        notes=list_notes(tables, [batch for batch in facts.batches if batch.queue == name]),
    )


def describe_state(facts: Facts, queue: QueueFacts) -> str:
    """Return the word of rowferry.queue_status as people read it; of several that run, which is the pace of all."""
    is_slowest = queue.is_slowest and queue.state == "running" and len(facts.report.queues) > 1
    return "slowest" if is_slowest else show_state(queue.state)


def find_summary(name: str) -> str:
    """Return what a queue does, in one sentence."""
    try:
        return find_queue(name).summary
    except UsageError:
        return "This queue is not installed where the page was written."


def add_outcomes(tables: Sequence[TableReport]) -> dict[str, int]:
    """Return the entries of several tables by outcome: settled ones, those that need an operator, unfinished ones."""
    first = [str(outcome) for outcome in Outcome]
    sums = {name: sum(table.outcomes[name] for table in tables) for name in [*first, *UNFINISHED]}
    return {name: number for name, number in sums.items() if number or name in {"migrated", "kept"}}


def list_bars(sums: Mapping[str, int]) -> list[Bar]:
    """Return a bar for each outcome, side by side in percent; one that occurs is half a percent wide at least."""
    total = sum(sums.values())
    widths = {name: max(100 * number / total, 0.5) for name, number in sums.items() if number}
    scale = 100 / sum(widths.values()) if widths else 0
    bars: list[Bar] = []
    start = 0.0
    for name, width in widths.items():
        bars.append(Bar(name, start, width * scale, f"{name}: {sums[name]:,} ({write_share(sums[name], total)})"))
        start += width * scale
    return bars


def tabulate_outcomes(queue: str, sums: Mapping[str, int], meanings: Mapping[str, str]) -> Table:
    """Return a row an outcome, and the sum, which is all entries."""
    total = sum(sums.values())
    rows: list[list[Cell]] = [
        [name, number, write_share(number, total), meanings.get(name, UNFINISHED.get(name, ""))]
        for name, number in sums.items()
    ]
    columns = [Column("Outcome", "outcome"), Column("Entries", "number"), Column("Share", "number"), Column("Meaning")]
    return Table(f"Outcomes of {queue}", columns, [*rows, ["all entries", total, "", ""]])


def tabulate_tables(queue: str, tables: Sequence[TableReport], report: Report) -> Table:
    """Return a row a table, those with most entries that need an operator first; the rest is summed up in a note."""
    kinds = {"move": "", "stay": " (rows stay)", "none": " (no rows)"}
    ordered = sorted(tables, key=lambda table: (-table.counts.unsettled, -table.counts.entries, table.label))
    rows: list[list[Cell]] = [
        [
            f"{table.label}{kinds[report.kind_of(table)]}",
            table.counts.entries,
            sum(number for outcome, number in table.counts.outcomes.items() if outcome.settled),
            table.counts.unsettled + table.parked_entries,
            table.waiting,
            table.counts.batches,
            table.attempts,
            write_bytes(table.counts.bytes),
            write_duration(table.duration),
        ]
        for table in ordered[:MOST_TABLES]
    ]
    numbers = ("Entries", "Settled", "Need an operator", "Waiting", "Batches", "Attempts", "Bytes", "Took")
    columns = [Column("Entries of", "foreign"), *(Column(name, "number") for name in numbers)]
    left = f"{len(tables) - MOST_TABLES} more tables." if len(tables) > MOST_TABLES else ""
    return Table(f"Tables of {queue}", columns, rows, left)


def list_notes(tables: Sequence[TableReport], batches: Sequence[BatchFacts]) -> list[str]:
    """Return the sentences below the tables of a queue."""
    counts = [table.counts for table in tables]
    notes = [
        f"{count_batches(sum(one.batches for one in counts))}: {sum(one.batches_done for one in counts):,} DONE, "
        f"{sum(one.batches_init for one in counts):,} INIT, {sum(one.batches_error for one in counts):,} ERROR. "
        f"{count(sum(table.attempts for table in tables), 'attempt', 'attempts')}."
    ]
    longest = [batch.longest for batch in batches if batch.longest and batch.longest > timedelta(0)]
    if longest:
        notes.append(f"The longest last attempt of a batch took {format_duration(max(longest))}.")
    if any(table.is_repeated for table in tables):
        notes.append("Several passes took the entries: an entry may count more than once.")
    began = min((table.started_at for table in tables if table.started_at), default=None)
    drawn = min((batch.began_at for batch in batches if batch.began_at), default=None)
    if began and drawn and (drawn - began).total_seconds() > 1:
        notes.append(f"It began at {write_moment(began)}; batches that were pruned or tried again since are not drawn.")
    return notes
