"""Says in a word and a sentence how a migration stands, and how its verification. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from rowferry.formatting import count, count_batches, count_entries, format_duration
from rowferry.reports.report import LEGACY_AGAIN, Report, TableReport, find_time_between, gives_form
from rowferry.reports.state import describe_state, show_state
from rowferry_cli.report.facts import Facts, MigrationFacts
from rowferry_cli.report.model import Tile, Tone, Verdict
from rowferry_cli.report.wording import write_bytes, write_duration, write_moment, write_share
from rowferry_queues.verify.spec import VERIFY

MOST_REVERTED = 5


def judge(facts: Facts) -> Verdict:
    """Return how the migration stands: the state that rowferry.migration_state has, in words."""
    report, migration = facts.report, facts.migration
    if not report.tables:
        return Verdict("Not begun", "Nothing has been enqueued.", "calm")
    if not report.balances:
        return Verdict("Mismatch", "The outcomes do not add up to the entries: this is a bug in rowferry.", "bad")
    decide, reverted = describe_undecided(report), describe_reverted(report)
    if migration.state == "done":
        took = facts.worked or find_duration(report)
        within = f" in {format_duration(took)}" if took else ""
        done = f"All batches are done: {count_entries(main_counts(facts)[0])}{within}."
        if reverted:
            return Verdict("Reverted", f"{reverted} All batches are done.", "warn")
        left = report.coverage.as_sentence()
        return Verdict("Done in part", f"{done} {left}", "warn") if left else Verdict("Done", done, "good")
    if migration.state == "need_somebody":
        verdict = Verdict("Needs an operator", f"All other batches are done; {decide}.", "bad")
    else:
        pending = sum(table.counts.batches_init for table in report.tables)
        left = (
            f"{pending:,} of {count_batches(sum(table.counts.batches for table in report.tables))} waiting or running"
        )
        verdict = _judge_pending(migration, f"{left}; {decide}." if decide else f"{left}.")
    more = [words for words in (reverted, report.coverage.as_sentence()) if words]
    return replace(verdict, sentence=" ".join([verdict.sentence, *more]))


def _judge_pending(migration: MigrationFacts, left: str) -> Verdict:
    if migration.state != "running":
        since = write_moment(migration.since) if migration.since else "it was stored"
        words = describe_state(migration.state, since, migration.what_to_do)
        tone: Tone = "bad" if migration.state in {"no_workers", "stalled"} else "warn"
        return Verdict(show_state(migration.state).capitalize(), f"{words} {left}", tone)
    seconds = migration.seconds_left
    ends = f" About {format_duration(timedelta(seconds=seconds))} left." if seconds is not None else ""
    return Verdict("Running", f"{left}{ends}", "busy")


def describe_undecided(report: Report) -> str:
    """Return what is in ERROR, without a full stop; empty where nothing is. A listing is a batch without entries."""
    parts: list[str] = []
    undecided = count_undecided(report)
    for queue, (entries, batches) in undecided.items():
        of = f" of {queue}" if len(report.queues) > 1 else ""
        parts.append(f"{f'{count_entries(entries)} in ' if entries else ''}{count_batches(batches)}{of}")
    is_one = [entries or batches for entries, batches in undecided.values()] == [1]
    return f"{' and '.join(parts)} {'needs' if is_one else 'need'} an operator" if parts else ""


def count_undecided(report: Report) -> dict[str, tuple[int, int]]:
    """Return the entries that need an operator, and the batches in ERROR, of each queue that has such batches."""
    found = {
        queue: (
            sum(table.counts.unsettled + table.parked_entries for table in tables),
            sum(table.counts.batches_error for table in tables),
        )
        for queue, tables in report.queues.items()
    }
    return {queue: counts for queue, counts in found.items() if counts[1]}


def describe_reverted(report: Report) -> str:
    """Return which rows are legacy again, in a sentence a table; empty where none are."""
    rows = report.reverted
    told = [f"{label}: {count(rows[label], 'row', 'rows')} {LEGACY_AGAIN}" for label in list(rows)[:MOST_REVERTED]]
    if len(rows) > MOST_REVERTED:
        told.append(f"{len(rows) - MOST_REVERTED} more tables were reverted, too.")
    return " ".join(told)


def find_duration(report: Report) -> timedelta | None:
    """Return the time from the first attempt of any queue to the last end; None before there is one."""
    starts = [table.started_at for table in report.tables if table.started_at]
    ends = [table.finished_at for table in report.tables if table.finished_at]
    return find_time_between(min(starts, default=None), max(ends, default=None))


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
    is_settled = settled == entries > 0 and not any(t.counts.batches_init or t.counts.batches_error for t in tables)
    before = ", before the revert" if report.reverted else ""
    settled_tone: Tone = "good" if is_settled and not report.reverted else "calm"
    verified = judge_verification(report)
    whole, moved = find_duration(report), sum(table.counts.bytes for table in tables)
    return [
        Tile("Entries", f"{entries:,}", of),
        Tile("Settled", write_share(settled, entries), f"{settled:,} of {entries:,}{before}", settled_tone),
        _build_undecided(report),
        Tile("Took", write_duration(facts.worked or whole), f"of work, within {write_duration(whole)}"),
        Tile("Copied", write_bytes(moved), "as far as servers tell"),
        Tile("Verified", verified.word, "see Verification", verified.tone),
    ]


def _build_undecided(report: Report) -> Tile:
    """Return the tile of batches in ERROR, of all queues; its note has the entries of each."""
    undecided = count_undecided(report)
    if not undecided:
        return Tile("In ERROR", "0", "batches: nothing needs an operator", "calm" if report.reverted else "good")
    several = len(report.queues) > 1
    notes = [
        f"{count_entries(entries)} of {queue}" if several else count_entries(entries)
        for queue, (entries, _) in undecided.items()
        if entries
    ]
    batches = sum(batches for _, batches in undecided.values())
    return Tile("In ERROR", f"{batches:,}", ": ".join(filter(None, ["batches", ", ".join(notes)])), "bad")


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
    words.append(f"{differ:,} need an operator." if differ else "None of them needs an operator.")
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
    if report.reverted:
        yield "Rows were reverted since: they point at their legacy objects again."
    ended = max((table.finished_at for table in tables if table.finished_at), default=None)
    last = max((table.finished_at for table in movers if table.finished_at), default=None)
    if ended and last and last > ended:
        yield f"Batches were migrated after it, until {write_moment(last)}: those entries were not compared."
