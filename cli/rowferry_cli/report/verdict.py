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
        done = f"All batches are done: {count_entries(count_main(facts))}{within}."
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


def list_tiles(facts: Facts) -> list[Tile]:
    """Return the numbers that a reader looks for first."""
    report = facts.report
    name, tables = find_main(report)
    if not tables:
        return []
    entries = count_main(facts)
    of = f"of {name}" if len(report.queues) > 1 else "in 1 table" if len(tables) == 1 else f"in {len(tables)} tables"
    verified = judge_verification(report)
    whole, moved = find_duration(report), sum(table.counts.bytes for table in tables)
    return [
        Tile("Entries", f"{entries:,}", of),
        _build_done(facts),
        _build_need(facts),
        Tile("Took", write_duration(facts.worked or whole), f"of work, within {write_duration(whole)}"),
        Tile("Copied", write_bytes(moved), "as far as servers tell"),
        Tile("Verified", verified.word, "see Verification", verified.tone),
    ]


def count_main(facts: Facts) -> int:
    """Return the entries of the main queue."""
    return sum(table.counts.entries for table in find_main(facts.report)[1])


def _build_done(facts: Facts) -> Tile:
    """Return the tile of the settled share: of the queue that is behind the others, as on each other screen."""
    share, is_reverted = facts.migration.done_share, bool(facts.report.reverted)
    tone: Tone = "good" if facts.migration.state == "done" and share == 1 and not is_reverted else "calm"
    behind = [queue for queue in facts.queues if share is not None and queue.done_share == share]
    if share is None or not behind:
        return Tile("Done", "–", "no entries yet")
    queue = behind[0]
    of = f" of {queue.queue}" if len(facts.report.queues) > 1 else ""
    settled = round(share * queue.entries)
    note = f"{settled:,} of {queue.entries:,}{of}{', before the revert' if is_reverted else ''}"
    return Tile("Done", write_share(settled, queue.entries), note, tone)


def _build_need(facts: Facts) -> Tile:
    """Return the tile of what needs an operator, of all queues; its note has the batches in ERROR of each."""
    found = [queue for queue in facts.queues if queue.batches_error]
    if not found:
        return Tile("Need an operator", "0", "no batch is in ERROR", "calm" if facts.report.reverted else "good")
    several = len(facts.report.queues) > 1
    notes = [f"{count_batches(queue.batches_error)}{f' of {queue.queue}' if several else ''}" for queue in found]
    return Tile("Need an operator", f"{facts.migration.need_somebody:,}", f"in {', '.join(notes)}", "bad")


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
