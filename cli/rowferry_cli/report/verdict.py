"""Says in a word and a sentence how a migration stands, and how its verification. Pure."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from psycopg.rows import DictRow

from rowferry.formatting import count, count_batches, count_entries, format_duration
from rowferry_cli.report.data import Report
from rowferry_cli.report.wording import write_moment
from rowferry_cli.status.state import describe_state, show_state
from rowferry_queues.verify.spec import VERIFY

MOST_REVERTED = 5
TONES = {"done": "good", "running": "busy", "paused": "warn", "waiting": "warn"}
"""How a state is coloured; the others, and `needs_operator`, are bad."""


class Said(NamedTuple):
    """A word, a sentence, and their colour: good, bad, warn, busy or calm."""

    word: str
    sentence: str
    tone: str


def judge(report: Report) -> Said:
    """Return how the migration stands: the state that rowferry.migration_state has, in words."""
    state = report.state["state"]
    if not report.tables:
        return Said("Not begun", "Nothing has been enqueued.", "calm")
    if not report.balances:
        return Said("Mismatch", "The outcomes do not add up to the entries: this is a bug in rowferry.", "bad")
    undecided, reverted = describe_undecided(report), describe_reverted(report)
    left = report.coverage.as_sentence() or ""
    if state == "done":
        took = find_duration(report)
        within = f" in {format_duration(took)}" if took else ""
        done = f"All batches are done: {count_entries(count_main(report))}{within}."
        if reverted:
            return Said("Reverted", f"{reverted} All batches are done.", "warn")
        return Said("Done in part", f"{done} {left}", "warn") if left else Said("Done", done, "good")
    words = [f"All other batches are done; {undecided}."] if state == "needs_operator" else []
    if state not in {"needs_operator", "running"}:
        words.append(describe_state(report.state, write_moment(report.state["since"] or report.state["created_at"])))
    if state != "needs_operator":
        words.append(f"{_count_pending(report)}{f'; {undecided}' if undecided else ''}.")
    if report.state["seconds_left"] is not None:
        words.append(f"About {format_duration(timedelta(seconds=report.state['seconds_left']))} left.")
    words += [more for more in (reverted, left) if more]
    return Said(show_state(state).capitalize(), " ".join(words), TONES.get(state, "bad"))


def find_duration(report: Report) -> timedelta | None:
    """Return the time from the first attempt to the last end; None where it is not known, or the clock was set back."""
    starts = [table["started_at"] for table in report.tables if table["started_at"]]
    ends = [table["finished_at"] for table in report.tables if table["finished_at"]]
    return max(ends) - min(starts) if starts and ends and max(ends) >= min(starts) else None


def _count_pending(report: Report) -> str:
    pending, batches = (sum(table[name] for table in report.tables) for name in ("batches_init", "batches"))
    return f"{pending:,} of {count_batches(batches)} waiting or running"


def describe_undecided(report: Report) -> str:
    """Return what is in ERROR, without a full stop; empty where nothing is. A listing is a batch without entries."""
    several = len(report.by_queue) > 1
    found = {
        queue: (sum(table["needs_operator"] for table in tables), sum(table["batches_error"] for table in tables))
        for queue, tables in report.by_queue.items()
    }
    counts = {queue: each for queue, each in found.items() if each[1]}
    parts = [
        f"{f'{count_entries(entries)} in ' if entries else ''}{count_batches(batches)}{f' of {queue}' * several}"
        for queue, (entries, batches) in counts.items()
    ]
    is_one = [entries or batches for entries, batches in counts.values()] == [1]
    return f"{' and '.join(parts)} {'needs' if is_one else 'need'} an operator" if parts else ""


def describe_reverted(report: Report) -> str:
    """Return which rows are legacy again, in a sentence a table; empty where none are."""
    rows = report.reverted
    said = [
        f"{label}: {count(rows[label], 'row', 'rows')} reverted, none migrated since: legacy again."
        for label in list(rows)[:MOST_REVERTED]
    ]
    if len(rows) > MOST_REVERTED:
        said.append(f"{len(rows) - MOST_REVERTED} more tables were reverted, too.")
    return " ".join(said)


def find_main(report: Report) -> list[DictRow]:
    """Return the tables of the queue that the page counts first: of the one that moves rows, else of the first one."""
    first = next(iter([*report.tables_that_give("production"), *report.tables]), None)
    return report.by_queue[first["queue"]] if first else []


def count_main(report: Report) -> int:
    """Return the entries of the main queue."""
    return sum(table["entries"] for table in find_main(report))


def judge_verification(report: Report, attempts: DictRow | None) -> Said:
    """Return what `verify` found; `attempts`: its row of `page_attempts`, which knows how many read all bytes."""
    tables = report.by_queue.get(VERIFY.name, [])
    if not tables:
        command = f"rowferry verify --migration {report.migration}"
        return Said("No", f"Production objects were not compared with their legacy objects: `{command}` does.", "warn")
    repaired = sum(table["migrated"] for table in tables)
    differ = sum(table["missing"] + table["conflict"] + table["failed"] for table in tables)
    compared = sum(table["settled"] for table in tables) + differ
    words = [f"{count_entries(compared)} compared, {_describe_depth(attempts)}."]
    if repaired:
        words.append(f"{repaired:,} were missing or different, and copied again.")
    words.append(f"{differ:,} need an operator." if differ else "None of them needs an operator.")
    gaps = list(_list_gaps(report, tables))
    word, tone = (f"{differ:,} differ", "bad") if differ else ("In part", "warn") if gaps else ("Yes", "good")
    return Said(word, " ".join([*words, *gaps]), tone)


def _describe_depth(attempts: DictRow | None) -> str:
    if attempts is None or not attempts["deep"]:
        return "by size, ETag and checksum, and by their bytes where these do not tell"
    return "byte by byte" if attempts["deep"] == attempts["attempts"] else "some of them byte by byte"


def _list_gaps(report: Report, tables: Sequence[DictRow]) -> Iterator[str]:
    """Yield a sentence for each reason why a verification does not speak for all entries."""
    if waiting := sum(table["waiting"] + table["parked"] for table in tables):
        yield f"{waiting:,} are still to be compared."
    movers = report.tables_that_give("production")
    moved = sum(table["migrated"] + table["kept"] for table in movers)
    missed = moved - sum(table["entries"] for table in tables)
    if missed > 0:
        yield f"{missed:,} migrated entries were not enqueued for it."
    if report.reverted:
        yield "Rows were reverted since: they point at their legacy objects again."
    ended, last = (
        max((table["finished_at"] for table in each if table["finished_at"]), default=None) for each in (tables, movers)
    )
    if ended and last and last > ended:
        yield f"Batches were migrated after it, until {write_moment(last)}: those entries were not compared."
