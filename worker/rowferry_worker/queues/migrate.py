"""The queue `migrate`: copy the objects of a batch, then point its rows at them."""

from collections.abc import Mapping

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.errors import NotStarted, ObjectNotFound, ObjectRejected
from rowferry.keys import production_key
from rowferry.plan import Entries
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.entries import Form, find_queries, read_range
from rowferry_worker.batch.rows import Move, rewrite_rows
from rowferry_worker.objects.copy import CopyResult, copy_object, log_copy
from rowferry_worker.objects.scheduler import ObjectResult

FORM: Form = "legacy"


def perform(context: BatchContext) -> list[EntryResult]:
    """Migrate the entries of the batch's range that are still legacy; return one result for each of them."""
    queries = find_queries(context, update=True)
    entries = read_range(context, FORM, queries)
    new_keys, faults = map_keys(entries, queries.entries)
    by_key = copy_objects(context, new_keys)
    started = context.leave_unstarted(
        entries,
        lambda entry: not isinstance(by_key.get(entry.key), NotStarted),
        leaves_range=lambda entry: may_move(by_key.get(entry.key)),
    )
    moves, results = choose_moves(started, new_keys, by_key | faults)
    return results + rewrite_rows(context, queries, moves)


def read(context: BatchContext) -> list[Entry]:
    """Return the entries of the batch's range that are still legacy, in the order of their ids."""
    return read_range(context, FORM)


def choose_moves(
    entries: list[Entry], new_keys: Mapping[str, str], by_key: Mapping[str, ObjectResult]
) -> tuple[list[Move], list[EntryResult]]:
    """Return the rows that may follow their objects, and the results of those whose object did not arrive."""
    moves: list[Move] = []
    left_out: list[EntryResult] = []
    arrived: set[str] = set()
    for entry in entries:
        result = by_key[entry.key]
        if not isinstance(result, CopyResult) or not may_move(result):
            left_out.append(result_of(entry, result))
            continue
        # Several rows may point at one object: it was copied once, for the first of them.
        first = entry.key not in arrived
        arrived.add(entry.key)
        outcome, size_bytes = (result.outcome, result.size_bytes) if first else (Outcome.KEPT, 0)
        moves.append(Move(entry, new_keys[entry.key], outcome, size_bytes))
    return moves, left_out


def may_move(result: ObjectResult | None) -> bool:
    """Return whether a row may follow its object."""
    return isinstance(result, CopyResult) and result.outcome is not Outcome.CONFLICT


def map_keys(entries: list[Entry], plan: Entries) -> tuple[dict[str, str], dict[str, ObjectResult]]:
    """Return the production key of each legacy key, and why the others have none."""
    new_keys: dict[str, str] = {}
    faults: dict[str, ObjectResult] = {}
    for entry in entries:
        try:
            new_keys[entry.key] = production_key(entry.key, plan)
        except ValueError as error:
            faults[entry.key] = ObjectRejected("KeyCannotBeMapped", str(error))
    return new_keys, faults


def copy_objects(context: BatchContext, new_keys: Mapping[str, str]) -> dict[str, ObjectResult]:
    """Copy each legacy key's object to its production key, many at once, and return how each copy ended."""
    s3 = context.object_requests()
    options = context.migration.copy_options(context.batch.payload.get("on_conflict", "fail"))
    return run_copies(
        context, lambda key: log_copy(copy_object(s3, options, key, new_keys[key]), key, new_keys[key]), new_keys
    )


def result_of(entry: Entry, result: ObjectResult) -> EntryResult:
    """Return the result of an entry whose object did not arrive."""
    if isinstance(result, CopyResult):
        words = "a different object stands at the production key; see --on-conflict"
        return EntryResult(entry, result.outcome, reason="different object", error=words)
    outcome = Outcome.MISSING if isinstance(result, ObjectNotFound) else Outcome.FAILED
    return EntryResult.from_error(entry, result, outcome)
