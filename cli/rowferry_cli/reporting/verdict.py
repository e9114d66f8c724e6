"""Says in a word and a sentence how a migration stands, and how its verification. Pure."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from rowferry.formatting import count_batches, count_entries, format_duration
from rowferry.reports.report import Report, TableReport, gives_form
from rowferry_cli.reporting.facts import Facts, MigrationFacts
from rowferry_cli.reporting.model import Tile, Tone, Verdict
from rowferry_cli.reporting.wording import write_bytes, write_moment, write_rate, write_share
from rowferry_queues.verify.spec import VERIFY


def judge(facts: Facts) -> Verdict:
    """Return how the migration stands: the state that rowferry.migration_state has, in words."""
    report, migration = facts.report, facts.migration
    if not report.tables:
        return Verdict("Not begun", "Nothing has been enqueued.", "calm")
    if not report.balances:
        return Verdict("Mismatch", "The outcomes do not add up to the entries: this is a bug in rowferry.", "bad")
    decide = describe_undecided(report)
    if migration.state == "done":
        took = find_duration(report)
        within = f" in {format_duration(took)}" if took else ""
        return Verdict("Done", f"All batches are done: {count_entries(main_counts(facts)[0])}{within}.", "good")
    if migration.state == "need_somebody":
        return Verdict("Needs a decision", f"All other batches are done; {decide}.", "bad")
    pending = sum(table.counts.batches_init for table in report.tables)
    left = f"{pending:,} of {count_batches(sum(table.counts.batches for table in report.tables))} pending"
    return _judge_pending(migration, f"{left}; {decide}." if decide else f"{left}.")


def _judge_pending(migration: MigrationFacts, left: str) -> Verdict:
    if migration.state == "paused":
        since = f"Paused since {write_moment(migration.paused_at)}" if migration.paused_at else "Paused"
        why = f": {migration.pause_reason.rstrip('.')}" if migration.pause_reason else ""
        return Verdict("Paused", f"{since}{why}. {left}", "warn")
    if migration.state == "no_workers":
        return Verdict("No workers", f"No live worker serves what is pending. {left}", "bad")
    if migration.state == "waiting":
        return Verdict("Waiting", f"No batch is due. {left}", "warn")
    seconds = migration.seconds_left
    ends = f" About {format_duration(timedelta(seconds=seconds))} left." if seconds is not None else ""
    return Verdict("Running", f"{left}{ends}", "busy")


def describe_undecided(report: Report) -> str:
    """Return what is in ERROR, without a full stop; empty where nothing is."""
    batches = sum(table.counts.batches_error for table in report.tables)
    entries = sum(table.counts.unsettled + table.parked_entries for table in report.tables)
    if not batches:
        return ""
    verb = "needs" if entries == 1 else "need"
    return f"{count_entries(entries)} in {count_batches(batches)} {verb} a decision"


def find_duration(report: Report) -> timedelta | None:
    """Return the time from the first attempt of any queue to the last end; None before there is one."""
    starts = [table.started_at for table in report.tables if table.started_at]
    ends = [table.finished_at for table in report.tables if table.finished_at]
    return max(ends) - min(starts) if starts and ends else None


def find_main(report: Report) -> tuple[str, list[TableReport]]:
    """Return the queue whose entries the page counts first: the one that moves rows, else the first of the chain."""
    queues = report.queues
    name = next((name for name in queues if gives_form(name) == "production"), next(iter(queues), ""))
    return name, queues.get(name, [])


def main_counts(facts: Facts) -> tuple[int, int]:
    """Return the entries of the main queue, and how many of them are settled."""
    _, tables = find_main(facts.report)
    settled = sum(number for t in tables for outcome, number in t.counts.outcomes.items() if outcome.settled)
    return sum(table.counts.entries for table in tables), settled


def list_tiles(facts: Facts) -> list[Tile]:
    """Return the numbers that a reader looks for first."""
    report = facts.report
    name, tables = find_main(report)
    if not tables:
        return []
    entries, settled = main_counts(facts)
    of = f"of {name}" if len(report.queues) > 1 else "in 1 table" if len(tables) == 1 else f"in {len(tables)} tables"
    undecided = sum(table.counts.unsettled + table.parked_entries for table in report.tables)
    verified = judge_verification(report)
    took, moved = find_duration(report), sum(table.counts.bytes for table in tables)
    finished = sum(table.counts.finished for table in tables)
    alone = [t.duration for t in tables if t.duration]
    rate = finished / max(max(alone).total_seconds(), 0.001) if alone else 0
    return [
        Tile("Entries", f"{entries:,}", of),
        Tile("Settled", write_share(settled, entries), f"{settled:,} of {entries:,}", _tone(settled == entries)),
        Tile("Need a decision", f"{undecided:,}", "of all queues", "bad" if undecided else "good"),
        Tile("Took", format_duration(took) if took else "–", f"{write_rate(rate)} entries/s on average"),
        Tile("Copied", write_bytes(moved) if moved else "–", "as far as servers tell"),
        Tile("Verified", verified.word, "see Verification", verified.tone),
    ]


def _tone(is_good: bool) -> Tone:
    return "good" if is_good else "calm"


def judge_verification(report: Report, deep: int = 0, batches: int = 0) -> Verdict:
    """Return what `verify` found; `deep`: of its finished `batches`, how many read the bytes of both sides."""
    tables = report.queues.get(VERIFY.name, [])
    if not tables:
        command = f"rowferry verify --migration {report.migration}"
        return Verdict(
            "No", f"Production objects were not compared with their legacy objects: `{command}` does.", "warn"
        )
    compared = sum(table.counts.finished for table in tables)
    differ = sum(table.counts.unsettled for table in tables)
    repaired = sum(table.counts.migrated for table in tables)
    words = [f"{count_entries(compared)} compared, {_describe_depth(deep, batches)}."]
    if repaired:
        words.append(f"{repaired:,} were missing or different, and copied again.")
    words.append(f"{differ:,} need a decision." if differ else "None of them needs a decision.")
    gaps = list(_list_gaps(report, tables))
    if differ:
        return Verdict(f"{differ:,} differ", " ".join([*words, *gaps]), "bad")
    return Verdict("In part" if gaps else "Yes", " ".join([*words, *gaps]), "warn" if gaps else "good")


def _describe_depth(deep: int, batches: int) -> str:
    if not deep:
        return "by size, ETag and checksum, and by their bytes where these do not tell"
    return "byte by byte" if deep == batches else "some of them byte by byte"


def _list_gaps(report: Report, tables: Sequence[TableReport]) -> Iterator[str]:
    """Yield a sentence for each reason why a verification does not speak for all entries."""
    if waiting := sum(table.counts.waiting for table in tables):
        yield f"{waiting:,} are still to be compared."
    entries = sum(table.counts.entries for table in tables)
    movers = [table for table in report.tables if gives_form(table.queue) == "production"]
    moved = sum(table.counts.migrated + table.counts.kept for table in movers)
    if entries < moved:
        yield f"{moved - entries:,} migrated entries were not enqueued for it."
    ended = max((table.finished_at for table in tables if table.finished_at), default=None)
    last = max((table.finished_at for table in movers if table.finished_at), default=None)
    if ended and last and last > ended:
        yield f"Batches were migrated after it, until {write_moment(last)}: those entries were not compared."
