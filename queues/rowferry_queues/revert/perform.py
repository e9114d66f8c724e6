"""What a batch of `revert` does: point rows back at their legacy objects, which are where they always were."""

from collections.abc import Sequence

from rowferry.batch import Entry, EntryResult, Outcome, Performed
from rowferry.errors import ObjectConflict, ObjectNotFound
from rowferry.s3.listings.keys import read_page
from rowferry.s3.operations import list_keys
from rowferry.s3.responses import name_request
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import choose_options, run_copies
from rowferry_worker.batch.objects import Judge, MappedRow, list_objects, map_rows
from rowferry_worker.batch.row_update import RowChange
from rowferry_worker.batch.rows import rewrite_rows
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.copying.copy import CopyOptions, CopyResult
from rowferry_worker.copying.precedence import find_precedence
from rowferry_worker.objects.compare import Pair, are_same
from rowferry_worker.objects.requests import ObjectRequests


def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Put production entries back to their legacy keys.

    MIGRATED: the row holds its legacy key again. KEPT: it stays production, since there is no legacy object, or
    its production object is newer and the batch says `keep_newer`.
    """
    queries = find_queries(context, update=True)
    rows = map_rows(entries, queries.entries, "legacy")
    s3, objects = context.object_requests(), list_objects(rows)
    find = find_in_folder if queries.entries.names_folders else find_legacy
    if context.batch.payload.get("keep_newer") and not queries.entries.names_folders:
        options = choose_options(context, stays=False)
        ends = run_copies(context, lambda key: find_unless_newer(s3, options, key, objects[key]), objects)
    else:
        ends = run_copies(context, lambda key: find(s3, key), objects)
    judge = Judge(ends)
    started, rest = judge.split_started(rows)
    moves, results = choose_moves(started, judge)
    return Performed(results + rewrite_rows(context, queries, moves, "legacy"), rest)


async def find_legacy(s3: ObjectRequests, key: str) -> CopyResult:
    """Look for a legacy object. Raises ObjectNotFound when there is none."""
    await s3.head("legacy", key)
    return CopyResult(Outcome.MIGRATED)


async def find_unless_newer(s3: ObjectRequests, options: CopyOptions, key: str, production_key: str) -> CopyResult:
    """Look for a legacy object, as `find_legacy`. Raises ObjectConflict where the production object counts."""
    source, existing = await s3.head("legacy", key), await s3.find("production", production_key)
    if existing is not None:
        pair = Pair(key, source, production_key, existing)
        if await are_same(s3, pair, options.copies):
            return CopyResult(Outcome.MIGRATED)
        if await find_precedence(s3, pair, options.copies, options.clocks, options.timeline) != "legacy":
            raise ObjectConflict("ProductionIsNewer", "the production object differs and was written last")
    return CopyResult(Outcome.MIGRATED)


async def find_in_folder(s3: ObjectRequests, prefix: str) -> CopyResult:
    """Look for any object in a legacy folder. Raises ObjectNotFound when there is none."""
    response = await s3.send(list_keys("legacy", prefix, max_keys=1))
    if not read_page(response).keys:
        raise name_request(ObjectNotFound("EmptyFolder", "the folder has no object"), list_keys("legacy", prefix))
    return CopyResult(Outcome.MIGRATED)


def choose_moves(rows: Sequence[MappedRow], judge: Judge) -> tuple[list[RowChange], list[EntryResult]]:
    """Return the rows that have legacy objects to go back to, and the results of the others."""
    moves: list[RowChange] = []
    others: list[EntryResult] = []
    for row in rows:
        obstacle = judge.find_obstacle(row)
        if obstacle is None:
            moves.append(RowChange(row.entry, (row.new_key,)))
        elif row.fault is not None or obstacle.outcome in {Outcome.MISSING, Outcome.CONFLICT}:
            others.append(EntryResult(row.entry, Outcome.KEPT))
        else:
            others.append(obstacle)
    return moves, others
