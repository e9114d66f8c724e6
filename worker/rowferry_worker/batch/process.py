"""Steps 2 to 4 of 5: entries, copies and rows, as the queue does them; or what the batch's crashes call for instead."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from psycopg.types.json import Jsonb

from rowferry.batch import Batch, Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import Connection, call
from rowferry.errors import NotFinished, QueueFault
from rowferry.queue_spec import SOURCE_WORDS, describe_fault
from rowferry_worker.batch.context import BatchContext, Patch
from rowferry_worker.batch.crash_policy import (
    CrashPolicy,
    choose_parallel,
    choose_policy,
    count_strikes,
    describe_crashes,
)
from rowferry_worker.batch.sources import find_source, name_source
from rowferry_worker.batch.verdict import judge
from rowferry_worker.scheduling.scheduler import CopyScheduler

_log = logging.getLogger(__name__)

AT_ONCE = timedelta(0)
"""How long a batch waits whose first object has taken the whole time budget: it stands behind the others now."""
GOES_ON = "its folder has more objects than one attempt takes; the next attempt goes on"
LOOK_AGAIN_AFTER = timedelta(seconds=10)
"""How long a batch waits for other batches that its objects need; the last of these makes it due at once."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """A batch's verdict and the results behind it."""

    judgement: Judgement
    results: Sequence[EntryResult] = field(default_factory=tuple[EntryResult, ...])
    is_outage: bool = True
    """Whether a RELEASED verdict means that a server is busy or unavailable: not where the time budget ended."""


def process(context: BatchContext) -> BatchResult:
    """Do what the batch's crashes call for: run it, run it slowly, bisect it or fail it."""
    batch, attempt = context.batch, context.attempt
    if not is_meant(context):
        return BatchResult(Judgement(Verdict.DONE))
    policy = choose_policy(batch, attempt)
    if policy is CrashPolicy.RUN:
        return _run_queue(context)
    crashes = batch.crashes + count_strikes(batch, attempt)
    fields = {"batch": batch.id, "strikes": crashes, "losses": attempt.losses, "policy": policy.value}
    _log.warning("batch has crashed workers or lost connections before", extra=fields)
    if policy is CrashPolicy.BISECT:
        entries = find_source(batch.payload).read(context)
        if len(entries) > 1:
            ids = bisect_batch(context.connection, batch, entries, crashes)
            reason = f"{describe_crashes(batch, attempt)}; it was halved into batches {ids[0]} and {ids[1]}"
            return BatchResult(Judgement(Verdict.DONE, error=reason))
        # All other entries were settled before. A single one is alone already; without any there is nothing to fail.
        policy = CrashPolicy.FAIL if entries and crashes >= batch.max_attempts else CrashPolicy.RUN_SLOWLY
    if policy is CrashPolicy.FAIL:
        return BatchResult(Judgement(Verdict.ERROR, error=f"{describe_crashes(batch, attempt)}; it is not run again"))
    scheduler = CopyScheduler(choose_parallel(batch, attempt), within=context.scheduler)
    return _run_queue(replace(context, scheduler=scheduler))


def is_meant(context: BatchContext) -> bool:
    """Return whether the queue works on what its batch is of: another queue hands on all that it settles.

    A batch that is not meant is done, and counts no entry.
    """
    payload = context.batch.payload
    return "items" in payload or "entries" not in payload or context.settings.means(payload["entries"])


def _run_queue(context: BatchContext) -> BatchResult:
    """Do the queue's work, and put back what the time budget did not suffice for."""
    batch, started = context.batch, context.started
    refuse_source(context)
    source = find_source(batch.payload)
    with context.steps.step("read"):
        if source.expand(context):
            return BatchResult(Judgement(Verdict.DONE))
        entries = source.read(context)
    context.progress.entries = len(entries)
    with context.steps.step("perform"):
        performed = call_perform(context, entries)
    results, remaining = _choose_remaining(context, performed)
    if remaining and not started:
        return _put_back_first(context, results, remaining)
    if remaining:
        _put_back(context, [started[-1], *remaining])
    judgement = judge(results, context.attempt.number, batch.max_attempts, is_away=context.migration.is_away())
    if context.awaited and judgement.verdict is not Verdict.DONE:
        return BatchResult(Judgement(Verdict.RELEASED, LOOK_AGAIN_AFTER, judgement.error), results, is_outage=False)
    return BatchResult(judgement, results)


def _choose_remaining(
    context: BatchContext, results: Sequence[EntryResult]
) -> tuple[Sequence[EntryResult], Sequence[Entry]]:
    """Return the results that count, and the entries to put back: of those behind the first, rows that did not move."""
    if not context.ended:
        return results, context.remaining
    ended = {entry.id for entry in context.ended}
    moved = {result.entry.id for result in results if result.outcome in {Outcome.MIGRATED, Outcome.KEPT}} & ended
    counted = [result for result in results if result.entry.id not in ended or result.entry.id in moved]
    return counted, [entry for entry in context.remaining if entry.id not in moved]


def _put_back_first(context: BatchContext, results: Sequence[EntryResult], remaining: Sequence[Entry]) -> BatchResult:
    """Release the batch, its first entry not having ended; put the others that remain back as a batch of their own.

    `results` are those of entries behind it: their rows are written, and count. The first entry counts as failed until
    the next attempt ends.
    """
    first = remaining[0]
    if not results and (len(remaining) == 1 or not context.going_on):
        words = GOES_ON if context.going_on else "time budget exceeded before its first object was written"
        return BatchResult(Judgement(Verdict.RELEASED, AT_ONCE, words), is_outage=False)
    if len(remaining) > 1:
        _put_back(context, remaining)
    words = (
        GOES_ON if context.going_on else "the time budget ended before its object was written; the next attempt goes on"
    )
    failed = EntryResult.from_error(first, NotFinished("NotFinished", words))
    return BatchResult(Judgement(Verdict.RELEASED, AT_ONCE, words), [*results, failed], is_outage=False)


def _put_back(context: BatchContext, entries: Sequence[Entry]) -> None:
    """Put all entries but the first back as a batch of their own; the claimed batch ends with that one."""
    # What ended behind the first entry is handed on with the claimed batch: the new one must not do so again.
    new_id = split_remaining(context.connection, context.batch, entries, is_begun=bool(context.ended))
    fields = {"batch": context.batch.id, "rest": len(entries) - 1, "new_batch": new_id}
    _log.info("time budget exceeded, remaining entries put back", extra=fields)


def bisect_batch(connection: Connection, batch: Batch, entries: Sequence[Entry], crashes: int) -> list[int]:
    """Put both halves of the entries back as batches with `crashes` crashes, and return their ids.

    `entries` are as they were read, at least two. The second half extends to the end of the batch's source.
    """
    middle = (len(entries) + 1) // 2
    lower, upper = find_source(batch.payload).cut(batch.payload, entries, middle)
    return [
        _split(connection, batch, lower, entry_count=middle, crashes=crashes),
        _split(connection, batch, upper, entry_count=len(entries) - middle, crashes=crashes),
    ]


def split_remaining(connection: Connection, batch: Batch, entries: Sequence[Entry], *, is_begun: bool = False) -> int:
    """Put all entries but the first back as a batch, and return its id; the claimed batch ends with the first now.

    `is_begun`: entries of the new batch's range are settled with the claimed one.
    """
    kept, rest = find_source(batch.payload).cut(batch.payload, entries, 1)
    rest = {**rest, "is_begun": True} if is_begun else rest
    return _split(connection, batch, rest, entry_count=len(entries) - 1, crashes=batch.crashes, keep=kept)


def _split(
    connection: Connection, batch: Batch, part: Patch, *, entry_count: int, crashes: int, keep: Patch | None = None
) -> int:
    kept = None if keep is None else Jsonb(keep)
    (row,) = call(connection, "split_batch", batch.id, Jsonb(part), entry_count, crashes, kept)
    return row["split_batch"]


def call_perform(context: BatchContext, entries: Sequence[Entry]) -> list[EntryResult]:
    """Return the queue's results. Raises QueueFault where they are not one for each entry, or it wants to end us.

    Entries that it has left for later (`context.remaining`) need none.
    """
    name = context.queue.spec.name
    try:
        results = context.queue.perform(context, entries)
    except SystemExit as error:
        raise QueueFault(f"The work of the queue {name} failed ({describe_fault(error)}): mend its package.") from error
    left = Counter(_ids(context.remaining)) - Counter(_ids(context.ended))
    if Counter(_ids([result.entry for result in results])) + left != Counter(_ids(entries)):
        owed = len(entries) - left.total()
        raise QueueFault(
            f"The work of the queue {name} returned {len(results)} results for {owed} entries, not just one result for "
            "each entry: mend its package."
        )
    return results


def refuse_source(context: BatchContext) -> None:
    """Raise QueueFault where the queue does not work on such batches: an operator made another queue lead to it.

    Parts of an upload are items that their queue has made for itself.
    """
    spec, source = context.queue.spec, name_source(context.batch.payload)
    if source not in spec.sources and not context.batch.is_of_parts:
        takes = " and ".join(SOURCE_WORDS[each] for each in sorted(spec.sources))
        raise QueueFault(
            f"The queue {spec.name} works on {takes}, not on {SOURCE_WORDS[source]}: correct `next` of the queues that "
            "lead to it, and delete this batch."
        )


def _ids(entries: Sequence[Entry]) -> list[str]:
    return [entry.id for entry in entries]
