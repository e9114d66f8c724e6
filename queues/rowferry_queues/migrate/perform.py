"""What a batch of `migrate` does: copy the objects, then point the rows at them."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from rowferry.batch import Entry, EntryResult, Performed
from rowferry.db.entries import EntryQueries
from rowferry.s3.operations import need_no_encoding
from rowferry_queues.folders import FolderRow, expand_folders, note_first
from rowferry_queues.migrate.folders import count_earlier, settle_folders
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import choose_options, find_plain_copies, run_copies
from rowferry_worker.batch.objects import Judge, MappedRow, list_objects, map_rows
from rowferry_worker.batch.ranges import is_listed, run_range
from rowferry_worker.batch.row_update import RowChange
from rowferry_worker.batch.rows import look_again, rewrite_rows, wait_for_turn, wait_until_free
from rowferry_worker.batch.second_look import look_at_sources
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.copying.copy import CopyOptions, CopyResult, copy_object, log_copy
from rowferry_worker.copying.follow import copy_standing
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.scheduling.copy_run import ObjectResult


def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Migrate legacy entries."""
    if is_listed(context):
        return run_range(
            context,
            entries,
            lambda objects: copy_objects(context, {each.legacy: each.production for each in objects}, stays=True),
        )
    queries = find_queries(context, update=True)
    rows = map_rows(entries, queries.entries)
    if queries.entries.names_folders:
        return _migrate_folders(context, queries, rows)
    stays = queries.entries.rows == "stay"
    by_key = copy_objects(context, list_objects(rows), stays=stays, row_count=len(rows))
    judge = Judge(by_key)
    started, rest = judge.split_started(rows, leave_range=not stays)
    moves, results = choose_moves(started, judge)
    if stays:
        copied = [EntryResult(move.entry, move.outcome, move.size_bytes) for move in moves]
        return Performed(look_again(context, queries, results, "legacy") + copied, rest)

    def look_at(waiting: Sequence[MappedRow]) -> tuple[Sequence[MappedRow], Mapping[str, ObjectResult]]:
        objects = list_objects(waiting)
        known = {key: by_key[key] for key in objects}
        return waiting, _look(context, _choose_options(context, stays=False), objects, known, each=True)

    return Performed(results + _move_rows(context, queries, moves, started, look_at), rest)


def _migrate_folders(context: BatchContext, queries: EntryQueries, mapped: Sequence[MappedRow]) -> Performed:
    """Copy what is in the folders of rows, and move the rows whose folders stand in production as a whole."""
    rows = expand_folders(context, queries.entries, mapped)
    copied = _copy_all(context, _choose_options(context, stays=False), list_objects(rows), copy_object)
    rows, goes_on = note_first(context, rows, copied)
    started, rest = Judge(copied).split_started(rows, leave_range=True)
    wait_for_turn(context, len(started))

    def look_at(waiting: Sequence[FolderRow]) -> tuple[Sequence[FolderRow], dict[str, ObjectResult]]:
        return settle_folders(context, queries.entries, waiting, copied, partial(_choose_folder_options, context))

    settled, by_key = look_at(started)
    moves, results = choose_moves(settled, Judge(by_key))
    row_of = {row.entry: row for row in settled}
    moves = [count_earlier(move, row_of[move.entry]) for move in moves]
    return Performed(results + _move_rows(context, queries, moves, settled, look_at), rest, goes_on)


def _choose_folder_options(context: BatchContext, is_earlier: bool) -> CopyOptions:
    """Return how objects of folders are copied that an earlier attempt may have copied: nothing but that is older."""
    options = replace(_choose_options(context, stays=False), looks_first=is_earlier)
    return replace(options, on_conflict="older") if is_earlier and options.on_conflict == "fail" else options


AnyRow = TypeVar("AnyRow", bound=MappedRow)


def _move_rows(
    context: BatchContext,
    queries: EntryQueries,
    moves: Sequence[RowChange],
    rows: Sequence[AnyRow],
    look_at: Callable[[Sequence[AnyRow]], tuple[Sequence[AnyRow], Mapping[str, ObjectResult]]],
) -> list[EntryResult]:
    """Point rows at their objects. Who holds one locked may be rewriting its object: it is waited for, and looked at.

    The rows are not locked meanwhile: no lock is held on the application's table while S3 works.
    """
    moved = rewrite_rows(context, queries, moves, has_turn=True, wait_for_locks=False)
    busy = {result.entry for result in moved if result.retryable}
    if not busy:
        return moved
    waiting = [move for move in moves if move.entry in busy]
    wait_until_free(context.connection, queries, waiting)
    looked_at, now = look_at([row for row in rows if row.entry in busy])
    standing, left_out = choose_moves(looked_at, Judge(now))
    may_move = {move.entry for move in standing}
    settled = [result for result in moved if result.entry not in busy]
    return (
        settled
        + left_out
        + rewrite_rows(
            context,
            queries,
            [move for move in waiting if move.entry in may_move],
            has_turn=True,
            wait_for_locks=False,
        )
    )


def choose_moves(rows: Sequence[MappedRow], judge: Judge) -> tuple[list[RowChange], list[EntryResult]]:
    """Return the rows that may follow their objects, and the results of those that an object keeps where they are."""
    moves: list[RowChange] = []
    left_out: list[EntryResult] = []
    for row in rows:
        if obstacle := judge.find_obstacle(row):
            left_out.append(obstacle)
            continue
        outcome, size_bytes = judge.count(row)
        moves.append(RowChange(row.entry, (row.new_key,), outcome, size_bytes))
    return moves, left_out


def copy_objects(
    context: BatchContext, objects: Mapping[str, str], *, stays: bool = False, row_count: int = 0
) -> dict[str, ObjectResult]:
    """Copy each legacy key's object to its production key, many at once, and return how each copy ended.

    `stays`: no row of these objects moves; from the second pass on, most of them are there. Else so many rows are about
    to move: their turn is waited for before the objects are looked at for the last time.
    """
    options = _choose_options(context, stays=stays)
    by_key = _copy_all(context, options, objects, copy_standing if stays else copy_object)
    if not stays:
        wait_for_turn(context, row_count)
    return _look(context, options, objects, by_key, stays=stays)


def _copy_all(
    context: BatchContext,
    options: CopyOptions,
    objects: Mapping[str, str],
    copy: Callable[[ObjectRequests, CopyOptions, str, str], Coroutine[Any, Any, CopyResult]],
) -> dict[str, ObjectResult]:
    s3 = context.object_requests()
    is_there = replace(options, looks_first=True)
    are_plain = not options.method.moves_bytes and need_no_encoding([*objects, *objects.values()])
    return run_copies(
        context,
        lambda key: log_copy(copy(s3, options, key, objects[key]), key, objects[key]),
        objects,
        find_usual=partial(
            find_plain_copies,
            context,
            options,
            objects,
            lambda key: copy(s3, is_there, key, objects[key]),
            stays=copy is copy_standing,
            are_plain=are_plain,
        ),
        targets=objects,
    )


def _choose_options(context: BatchContext, *, stays: bool) -> CopyOptions:
    payload = context.batch.payload
    looks_first = payload.get("pass", 1) > 1 or "again" in payload
    return choose_options(context, payload.get("on_conflict", "fail"), stays=stays, looks_first=looks_first)


def _look(
    context: BatchContext,
    options: CopyOptions,
    objects: Mapping[str, str],
    by_key: Mapping[str, ObjectResult],
    *,
    stays: bool = False,
    each: bool = False,
) -> dict[str, ObjectResult]:
    """Look at the legacy objects once more, as look_at_sources does, unless the plan says that nobody rewrites them."""
    if context.migration.plan.legacy.immutable:
        return dict(by_key)
    pairs = {key: (key, objects[key]) for key in objects}
    return look_at_sources(context, options, pairs, by_key, stays=stays, each=each)
