"""The queue `revert`: point the rows of a batch back at their legacy objects, which are where they always were."""

from collections.abc import Mapping

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.errors import NotStarted, ObjectNotFound
from rowferry.keys import legacy_key
from rowferry.plan import Entries
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.entries import Form, find_queries, read_range
from rowferry_worker.batch.rows import Move, rewrite_rows
from rowferry_worker.objects.copy import CopyResult
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.objects.scheduler import ObjectResult

FORM: Form = "production"
WRITES_OBJECTS = False


def perform(context: BatchContext) -> list[EntryResult]:
    """Put the production entries of the batch's range back to their legacy keys; return one result for each of them.

    MIGRATED: the row holds its legacy key again. KEPT: it stays production, since there is no legacy object.
    """
    queries = find_queries(context, update=True)
    entries = read_range(context, FORM, queries)
    old_keys = map_back(entries, queries.entries)
    s3 = context.object_requests()
    by_key = run_copies(context, lambda key: find_legacy(s3, old_keys[key]), old_keys)
    started = context.leave_unstarted(entries, lambda entry: not isinstance(by_key.get(entry.key), NotStarted))
    moves, results = choose_moves(started, old_keys, by_key)
    return results + rewrite_rows(context, queries, moves)


def read(context: BatchContext) -> list[Entry]:
    """Return the entries of the batch's range that are production, in the order of their ids."""
    return read_range(context, FORM)


def map_back(entries: list[Entry], plan: Entries) -> dict[str, str]:
    """Return the legacy key of each production key, of those that can come from one."""
    old_keys: dict[str, str] = {}
    for entry in entries:
        try:
            old_keys[entry.key] = legacy_key(entry.key, plan)
        except ValueError:
            continue
    return old_keys


async def find_legacy(s3: ObjectRequests, key: str) -> CopyResult:
    """Look for a legacy object. Raises ObjectNotFound when there is none."""
    await s3.head("legacy", key)
    return CopyResult(Outcome.MIGRATED)


def choose_moves(
    entries: list[Entry], old_keys: Mapping[str, str], by_key: Mapping[str, ObjectResult]
) -> tuple[list[Move], list[EntryResult]]:
    """Return the rows that have a legacy object to go back to, and the results of the others."""
    moves: list[Move] = []
    others: list[EntryResult] = []
    for entry in entries:
        result = by_key.get(entry.key)
        if isinstance(result, CopyResult):
            moves.append(Move(entry, old_keys[entry.key], Outcome.MIGRATED, 0))
        elif result is None or isinstance(result, ObjectNotFound):
            others.append(EntryResult(entry, Outcome.KEPT))
        else:
            others.append(EntryResult.from_error(entry, result))
    return moves, others
