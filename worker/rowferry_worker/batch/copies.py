"""Step 3 of 5: run the copies of a batch on the event loop; sides/faults.py judges what their ends tell of a side."""

import math
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from rowferry.batch import Outcome
from rowferry.db.connection import fetch_one
from rowferry.db.statements import statement
from rowferry.errors import RowferryError, TimedOut, Unreachable
from rowferry.http import event_loop
from rowferry.plan import OnConflict
from rowferry.reports.facts import READABLE, WRITTEN
from rowferry.s3.clocks import Skew
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.sides.asking import are_reachable
from rowferry_worker.batch.sides.faults import SAME, KeyMap, judge_sides
from rowferry_worker.copying.copy import CopyOptions, CopyResult
from rowferry_worker.copying.precedence import NO_TIMELINE, Clocks, Timeline
from rowferry_worker.scheduling.copy_run import Copy, CopyRun, FindUsual, ObjectResult
from rowferry_worker.scheduling.lanes import PlainCopies

CANCEL_WITHIN = timedelta(seconds=3)
"""How long to wait for the aborts of a batch's multipart uploads once the worker releases it, or has lost it."""


def choose_options(
    context: BatchContext, on_conflict: OnConflict = "fail", *, stays: bool, looks_first: bool = False
) -> CopyOptions:
    """Return how the batch's objects are copied; `stays`: no row of them moves."""
    copying, skew, earlier = context.migration.copying, context.batch.payload.get("skew"), context.attempt.since_first
    return replace(
        copying,
        on_conflict=on_conflict,
        looks_first=looks_first,
        timeline=read_timeline(context) if stays else NO_TIMELINE,
        clocks=copying.clocks if skew is None else Clocks(Skew(*skew)),
        large_objects=context.large_objects(),
        tried_since=None if earlier is None else time.monotonic() - earlier.total_seconds(),
    )


def read_timeline(context: BatchContext) -> Timeline:
    """Return when the batch's migration was made, and when its application was switched, by time.monotonic().

    The payload says since when it may be switched in this pass. Moments are told by PostgreSQL's clock alone.
    """
    batch = context.batch
    parameters = {"migration_id": batch.migration_id, "switched_at": batch.payload.get("switched_at")}
    row: dict[str, Any] = fetch_one(context.connection, statement("read_timeline"), parameters)
    now = time.monotonic()
    at = {name: None if ago is None else now - float(ago) for name, ago in row.items()}
    first, last = at["was_switched"], at["switched_back"]
    return Timeline(at["began"], at["switched"], None if first is None or last is None else (first, last))


def run_copies(
    context: BatchContext,
    copy: Copy,
    keys: Iterable[str],
    *,
    is_look: bool = False,
    find_usual: FindUsual = lambda: None,
    targets: KeyMap = SAME,
    sources: KeyMap = SAME,
) -> dict[str, ObjectResult]:
    """Copy the object of each key, many at once, and return how each copy ended; NotStarted past the time budget.

    `is_look`: they were copied, and are looked at once more; few are copied again. `find_usual`, which is called on the
    event loop, returns what lanes do of that. `targets`: the production keys, where `keys` are legacy keys. With
    `sources`, the legacy keys, `keys` are parts of these objects.

    Raises BatchReleased when the worker gives the batch up meanwhile, MigrationFault when a side is at fault.
    """
    unique = dict.fromkeys(keys)
    if not is_look:
        context.progress.expect(len(unique))
    run = CopyRun(
        context.scheduler,
        copy,
        unique,
        deadline=math.inf if is_look else context.deadline,
        batch_id=context.batch.id,
        work=None if is_look else context.work,
        note=partial(_note_look, context) if is_look else partial(_note_end, context, (targets, sources)),
        is_look=is_look,
        find_usual=find_usual,
        most=context.parallel,
    )
    ended = _wait_for(context, run)
    _record_success(context)
    if set(map(type, ended.values())) <= {CopyResult}:  # as nearly always
        return ended
    by_key = judge_sides(context, ended, targets, sources)
    if any(isinstance(result, Unreachable) for result in by_key.values()) and are_reachable(context.migration):
        return {key: _charge_attempt(result) for key, result in by_key.items()}
    return dict(by_key)


def find_plain_copies(
    context: BatchContext,
    options: CopyOptions,
    objects: Mapping[str, str],
    when_there: Copy,
    *,
    stays: bool,
    are_plain: bool | None = None,
) -> PlainCopies | None:
    """Return what lanes do of the copies of objects, by their legacy keys; None: each takes a task.

    `when_there` copies an object where one was seen at its production key. `stays`: no row of them moves, so an object
    that only the production bucket has is not missing. `are_plain`: whether no key needs to be encoded.
    """
    plain, found = options.plain_copy, context.migration.find_lanes("production", "CopyObject")
    if plain is None or found is None:
        return None
    usual = PlainCopies(*found, plain, objects, when_there, are_plain=are_plain)
    usual.final = (TimedOut,) if stays else usual.final
    return usual


def run_listings(context: BatchContext, list_one: Copy, keys: Iterable[str]) -> dict[str, ObjectResult]:
    """List something for each key, many at once, and return how each ended.

    Raises BatchReleased when the worker gives the batch up meanwhile, MigrationFault when a side is at fault or may not
    be listed.
    """
    ended = _wait_for(context, CopyRun(context.scheduler, list_one, keys, batch_id=context.batch.id, is_look=True))
    return dict(judge_sides(context, ended))


def _record_success(context: BatchContext) -> None:
    """Keep for other workers, and for those after them, for which keys requests succeed."""
    evidence, ledger = context.migration.evidence, context.ledger
    if evidence.is_recorded or evidence.written is None or ledger is None:
        return
    evidence.is_recorded = True
    with suppress(RowferryError):  # the next worker that succeeds does so
        for fact, key in ((READABLE, evidence.readable), (WRITTEN, evidence.written)):
            ledger.call("record_fact", context.migration.name, fact, True, key)


def _note_end(context: BatchContext, other: tuple[KeyMap, KeyMap], key: str, result: ObjectResult, count: int) -> bool:
    """Take in how a copy ended, the last of so many that ended well; return whether that seems the server's fault.

    `other`: `targets` and `sources` of `run_copies`. A part that was written is no production object yet.
    """
    targets, sources = other
    if isinstance(result, CopyResult) and result.outcome is not Outcome.CONFLICT:
        context.progress.note_end(count)
    return _note(context, sources.get(key, key), result, None if key in sources else targets.get(key))


def _note(context: BatchContext, key: str, result: ObjectResult, target: str | None = None) -> bool:
    """Take in what the end of a copy tells of the servers, as `_note_end`."""
    return context.migration.evidence.note(key, result, is_first=context.attempt.number == 1, target=target)


_READ = CopyResult(Outcome.KEPT)


def _note_look(context: BatchContext, key: str, result: ObjectResult, _count: int) -> bool:
    """Take in what the end of a look tells: the object could be read, and nothing of writes."""
    return _note(context, key, _READ if isinstance(result, CopyResult) else result)


def _wait_for(context: BatchContext, run: CopyRun) -> dict[str, ObjectResult]:
    """Return how the copies ended. They are cancelled when the batch is released or lost meanwhile."""
    future = event_loop.submit(run.run_all())
    try:
        return context.wait_for(future)
    except BaseException:
        # The batch's rows may name the objects by now, so nothing may be written any more.
        event_loop.call_soon(run.cancel)
        wait([future], CANCEL_WITHIN.total_seconds())
        raise


def _charge_attempt(result: ObjectResult) -> ObjectResult:
    """Return the result of a copy; a broken connection costs an attempt, since the servers respond to others."""
    if isinstance(result, Unreachable):
        charged = Unreachable(result.code, "the connection broke")
        charged.costs_attempt = True
        return charged
    return result
