"""Steps 2 to 4 of 5: entries, copies and rows, as the queue does them; or what the batch's crashes call for instead."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from psycopg.types.json import Jsonb

from rowferry.batch import Batch, Entry, EntryResult, Judgement, Outcome, Performed, Verdict
from rowferry.db.connection import Connection, call
from rowferry.errors import NotFinished, QueueFault
from rowferry.queue_spec import SOURCE_WORDS, describe_fault
from rowferry_worker.batch.context import BatchContext, Patch
from rowferry_worker.batch.crash_policy import (
    SLOW_PARALLEL,
    CrashPolicy,
    choose_policy,
    count_strikes,
    describe_crashes,
)
from rowferry_worker.batch.sources import cut, is_to_be_cut, name_source, read_source
from rowferry_worker.batch.sources.listing import cut_listing
from rowferry_worker.batch.verdict import judge

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
        entries = read_source(context)
        if len(entries) > 1:
            ids = bisect_batch(context.connection, batch, entries, crashes)
            reason = f"{describe_crashes(batch, attempt)}; it was halved into batches {ids[0]} and {ids[1]}"
            return BatchResult(Judgement(Verdict.DONE, error=reason))
        # All other entries were settled before. A single one is alone already; without any there is nothing to fail.
        policy = CrashPolicy.FAIL if entries and crashes >= batch.max_attempts else CrashPolicy.RUN_SLOWLY
    if policy is CrashPolicy.FAIL:
        return BatchResult(Judgement(Verdict.ERROR, error=f"{describe_crashes(batch, attempt)}; it is not run again"))
    return _run_queue(replace(context, parallel=SLOW_PARALLEL))


def is_meant(context: BatchContext) -> bool:
    """Return whether the queue works on what its batch is of: another queue hands on all that it settles.

    A batch that is not meant is done, and counts no entry.
    """
    payload = context.batch.payload
    return "items" in payload or "entries" not in payload or context.settings.means(payload["entries"])


def _run_queue(context: BatchContext) -> BatchResult:
    """Do the queue's work, and put back what the time budget did not suffice for."""
    batch = context.batch
    refuse_source(context)
    with context.steps.step("read"):
        if is_to_be_cut(batch.payload):
            cut_listing(context)
            return BatchResult(Judgement(Verdict.DONE))
        entries = read_source(context)
    context.progress.entries = len(entries)
    with context.steps.step("perform"):
        performed = call_perform(context, entries)
    results, rest = choose_counted(performed)
    left = _ids(performed.rest)
    begun = [entry for entry in entries if entry.id not in left]
    if rest and not begun:
        return _put_back_first(context, performed.goes_on, results, rest)
    if rest:
        _put_back(context, [begun[-1], *rest], is_begun=len(rest) < len(left))
    judgement = judge(results, context.attempt.number, batch.max_attempts, is_away=context.migration.is_away())
    if performed.wait_for and judgement.verdict is not Verdict.DONE:
        return BatchResult(Judgement(Verdict.RELEASED, LOOK_AGAIN_AFTER, judgement.error), results, is_outage=False)
    return BatchResult(judgement, results)


def choose_counted(performed: Performed) -> tuple[Sequence[EntryResult], Sequence[Entry]]:
    """Return the results that count, and the entries to put back: of the rest, those whose rows did not move."""
    left = _ids(performed.rest)
    moved = {each.entry.id for each in performed.results if each.outcome in {Outcome.MIGRATED, Outcome.KEPT}} & left
    counted = [each for each in performed.results if each.entry.id not in left or each.entry.id in moved]
    return counted, [entry for entry in performed.rest if entry.id not in moved]


def _put_back_first(
    context: BatchContext, goes_on: bool, results: Sequence[EntryResult], rest: Sequence[Entry]
) -> BatchResult:
    """Release the batch, its first entry not having ended; put the others that are left back as a batch of their own.

    `results` are those of entries behind it: their rows are written, and count. The first entry counts as failed until
    the next attempt ends.
    """
    if not results and (len(rest) == 1 or not goes_on):
        words = GOES_ON if goes_on else "time budget exceeded before its first object was written"
        return BatchResult(Judgement(Verdict.RELEASED, AT_ONCE, words), is_outage=False)
    if len(rest) > 1:
        _put_back(context, rest, is_begun=bool(results))
    words = GOES_ON if goes_on else "the time budget ended before its object was written; the next attempt goes on"
    failed = EntryResult.from_error(rest[0], NotFinished("NotFinished", words))
    return BatchResult(Judgement(Verdict.RELEASED, AT_ONCE, words), [*results, failed], is_outage=False)


def _put_back(context: BatchContext, entries: Sequence[Entry], *, is_begun: bool) -> None:
    """Put all entries but the first back as a batch of their own; the claimed batch ends with that one."""
    # What ended behind the first entry is handed on with the claimed batch: the new one must not do so again.
    new_id = split_remaining(context.connection, context.batch, entries, is_begun=is_begun)
    fields = {"batch": context.batch.id, "rest": len(entries) - 1, "new_batch": new_id}
    _log.info("time budget exceeded, remaining entries put back", extra=fields)


def bisect_batch(connection: Connection, batch: Batch, entries: Sequence[Entry], crashes: int) -> list[int]:
    """Put both halves of the entries back as batches with `crashes` crashes, and return their ids.

    `entries` are as they were read, at least two. The second half extends to the end of the batch's source.
    """
    middle = (len(entries) + 1) // 2
    lower, upper = cut(batch.payload, entries, middle)
    return [
        _split(connection, batch, lower, entry_count=middle, crashes=crashes),
        _split(connection, batch, upper, entry_count=len(entries) - middle, crashes=crashes),
    ]


def split_remaining(connection: Connection, batch: Batch, entries: Sequence[Entry], *, is_begun: bool = False) -> int:
    """Put all entries but the first back as a batch, and return its id; the claimed batch ends with the first now.

    `is_begun`: entries of the new batch's range are settled with the claimed one.
    """
    kept, rest = cut(batch.payload, entries, 1)
    rest = {**rest, "is_begun": True} if is_begun else rest
    return _split(connection, batch, rest, entry_count=len(entries) - 1, crashes=batch.crashes, keep=kept)


def _split(
    connection: Connection, batch: Batch, part: Patch, *, entry_count: int, crashes: int, keep: Patch | None = None
) -> int:
    kept = None if keep is None else Jsonb(keep)
    (row,) = call(connection, "split_batch", batch.id, Jsonb(part), entry_count, crashes, kept)
    return row["split_batch"]


def call_perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Return what the queue has done. Raises QueueFault where that is not whole, or the queue wants to end the worker.

    Each entry has one result, or is among the rest.
    """
    name = context.queue.spec.name
    try:
        performed: Any = context.queue.perform(context, entries)
    except SystemExit as error:
        raise QueueFault(f"The work of the queue {name} failed ({describe_fault(error)}): fix its package.") from error
    if not isinstance(performed, Performed):
        kind = type(performed).__name__
        raise QueueFault(f"The work of the queue {name} returned a {kind}, not Performed: fix its package.")
    if not performed.rest and [result.entry for result in performed.results] == [*entries]:  # as nearly always
        return performed
    ended = Counter(result.entry.id for result in performed.results)
    left = _ids(performed.rest) - ended.keys()
    if ended + Counter(left) != Counter(entry.id for entry in entries):
        owed = len(entries) - len(left)
        raise QueueFault(
            f"The work of the queue {name} returned {ended.total()} results for {owed} entries, not just one result "
            "for each entry: fix its package."
        )
    return performed


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


def _ids(entries: Sequence[Entry]) -> set[str]:
    return {entry.id for entry in entries}
