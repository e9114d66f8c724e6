"""Builds what the page says of failures: reasons, samples, what to type, and what retries have overcome. Pure."""

from collections.abc import Callable, Sequence

from rowferry.formatting import count_batches, count_entries
from rowferry_cli.messages import NO_REASON, write_requeue
from rowferry_cli.report.facts import Facts, Reason, Retry, Sample
from rowferry_cli.report.hide import cut
from rowferry_cli.report.model import Cell, Column, ReasonPart, Table
from rowferry_cli.report.wording import write_moment

Clean = Callable[[str], str]
"""Hides secrets; texts are cut only after it."""
MOST_OF_A_KEY = 300
MOST_OF_A_COMMAND = 400
MEANINGS = {
    "RETRY": "failed, tried again",
    "RELEASED": "given back, costs nothing",
    "LOST": "connection lost before it began",
}


def build_reasons(facts: Facts, clean: Clean) -> list[ReasonPart]:
    """Return the reasons in ERROR, the most entries first."""
    return [_build_reason(facts, reason, clean) for reason in facts.reasons]


def _build_reason(facts: Facts, reason: Reason, clean: Clean) -> ReasonPart:
    mine = (reason.queue_name, reason.outcome, reason.reason)
    samples = [sample for sample in facts.samples if (sample.queue, sample.outcome, sample.reason) == mine]
    several = f" of {reason.queue_name}" if len(facts.report.queues) > 1 else ""
    last = f", the last at {write_moment(reason.last_failed_at)}" if reason.last_failed_at else ""
    counts = f"{count_entries(reason.entries)} in " if reason.entries else ""
    command, advice = find_command(facts, reason, clean)
    return ReasonPart(
        outcome=reason.outcome,
        reason=cut(clean(reason.reason or NO_REASON)),
        sentence=f"{counts}{count_batches(reason.batches)}{several}{last}. {advice}",
        command=command,
        samples=tabulate_samples(samples, reason, clean) if samples else None,
        error="" if samples else cut(clean(reason.example_error or "")),
    )


def find_command(facts: Facts, reason: Reason, clean: Clean) -> tuple[str, str]:
    """Return what to type for a reason, and a sentence that leads to it.

    It requeues the batches of this reason; where its text is too long for the page, or may hold a secret, it prints the
    command that does.
    """
    migration, queue = facts.report.migration, reason.queue_name
    one = queue if len(facts.report.queues) > 1 else None
    if reason.repair is not None:
        return reason.repair, "Look at both objects. This copies the legacy object again:"
    choice = ("older" if reason.outcome == "conflict" else "keep") if reason.takes_on_conflict else None
    command = write_requeue(reason.pattern, migration=migration, queue=one, on_conflict=choice)
    if len(command) > MOST_OF_A_COMMAND or clean(command) != command:
        why = "Its text is long or may hold a secret, so the command that requeues it is not here."
        return f"rowferry errors --queue {queue} --migration {migration}", f"Fix the cause. {why} This prints it:"
    if reason.pattern is None:
        return command, "Fix the cause. No reason to choose by was recorded, so this requeues all that is in ERROR:"
    if choice is not None:
        return (
            command,
            "Replace the production object if it is older than the legacy one, or write overwrite to do it always:",
        )
    return command, "Fix the cause, then:"


def tabulate_samples(samples: Sequence[Sample], reason: Reason, clean: Clean) -> Table:
    """Return a row an entry."""
    rows: list[list[Cell]] = [
        [cut(clean(sample.id), 100), cut(clean(sample.key), MOST_OF_A_KEY), cut(clean(sample.error)), sample.attempt]
        for sample in samples
    ]
    shown = f"{len(samples)} of {count_entries(reason.entries)}" if len(samples) < reason.entries else "All entries"
    columns = [
        Column("Id", "foreign"),
        Column("Key", "foreign"),
        Column("Error", "foreign"),
        Column("Attempt", "number"),
    ]
    return Table(f"{shown}: {reason.outcome}, {cut(clean(reason.reason or NO_REASON), 100)}", columns, rows)


def describe_more(facts: Facts) -> str:
    """Return how many reasons are not on the page; empty where all are."""
    total = facts.reasons[0].total if facts.reasons else 0
    more = total - len(facts.reasons)
    if more <= 0:
        return ""
    return f"{more:,} more reasons: `rowferry errors --limit {total} --migration {facts.report.migration}` lists them."


def tabulate_retries(retries: Sequence[Retry], clean: Clean) -> Table | None:
    """Return why attempts ended without a result, the most frequent first; None where none did."""
    if not retries:
        return None
    rows: list[list[Cell]] = [
        [
            cut(clean(retry.error or NO_REASON)),
            retry.queue,
            f"{retry.verdict}: {MEANINGS.get(retry.verdict, '')}",
            retry.attempts,
            write_moment(retry.last_at) if retry.last_at else "",
        ]
        for retry in retries
    ]
    columns = [
        Column("Why", "foreign"),
        Column("Queue"),
        Column("Verdict"),
        Column("Attempts", "number"),
        Column("Last"),
    ]
    more = retries[0].total - len(retries)
    return Table("Attempts that ended early, and were made again", columns, rows, f"{more:,} more." if more > 0 else "")
