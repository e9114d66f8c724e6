"""Batches of objects without rows: a listing of the legacy bucket is cut into ranges, which other batches copy."""

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from rowferry.batch import Entry
from rowferry.db.connection import call
from rowferry.errors import AccessDenied, MigrationFault, ObjectError
from rowferry.http import event_loop
from rowferry.plan import BucketPrefix, ObjectPrefix, SideName
from rowferry.s3.listings.keys import ListedKeys, list_range
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_worker.batch.context import BatchContext, find_meant
from rowferry_worker.batch.sides.faults import describe_listing, judge_sides

_log = logging.getLogger(__name__)

LISTED_KEYS = 20_000
LISTED_PAGES = 25
LISTED_WITHIN = timedelta(seconds=5)
"""Bounds of one listing batch, whose transaction is open meanwhile: what comes first ends it."""


RANGE_PAGES = 50


def read_listing(context: BatchContext) -> list[Entry]:
    """Return the objects of the batch's range as entries whose id is the key, in the order of their bytes.

    The range: keys from `first` to `last` of the payload, both included. Where there are more than `choose_most`, the
    last one stands for all of them.
    """
    meant = find_meant(context.batch.payload)
    if meant is not None:
        return [Entry(key, key) for key in sorted(meant)]
    listed = list_keys(context, most_keys=choose_most(context), is_enough=lambda page: page > RANGE_PAGES)
    keys = listed.keys if listed.next is None else [*listed.keys, listed.next]
    return [Entry(key, key) for key in keys]


def choose_most(context: BatchContext) -> int:
    """Return how many objects a range is worked on with."""
    size: int = context.batch.payload["size"]
    return size + size // 4


def find_prefix(context: BatchContext) -> ObjectPrefix | BucketPrefix:
    """Return the plan's [[objects]] of a batch, or the prefix of one bucket that a queue names.

    Raises MigrationFault if the plan has no [[objects]] of that name any more.
    """
    label, plan = context.batch.payload["entries"], context.migration.plan
    if label.startswith("s3://"):
        return BucketPrefix.parse(label)
    found = next((objects for objects in plan.objects if objects.label == label), None)
    if found is None:
        raise MigrationFault(f"The plan of migration {plan.name} has no [[objects]] {label}.")
    return found


def cut_listing(context: BatchContext) -> None:
    """Put a batch in the queue for each range of what a page or more of the listing names, and one for its rest.

    They appear with the verdict on this batch, so that each key is in one of them, wherever a worker is killed.
    """
    payload, soon = context.batch.payload, time.monotonic() + LISTED_WITHIN.total_seconds()
    listed = list_keys(
        context,
        most_keys=min(LISTED_KEYS, payload.get("limit", LISTED_KEYS)),
        is_enough=lambda page: page > LISTED_PAGES or time.monotonic() > soon,
    )
    (added,) = call(context.connection, "add_ranges", context.batch.id, listed.keys, listed.next)
    fields = {"batch": context.batch.id, "objects": added["entries"], "new_batches": added["batches"]}
    _log.info("objects listed", extra={**fields, "next": listed.next})


def list_keys(context: BatchContext, *, most_keys: int, is_enough: Callable[[int], bool]) -> ListedKeys:
    """Return the keys of the batch's own range in its bucket, as `list_range` does.

    Raises BatchReleased when the worker gives the batch up meanwhile, MigrationFault when the bucket cannot be used or
    listed, AccessDenied where it is this prefix alone, ServerUnavailable when the server answers nothing as S3 does.
    """
    payload, requests = context.batch.payload, context.object_requests()
    side: SideName = payload.get("side", "legacy")
    prefix = find_prefix(context).prefix

    def ask(request: Request) -> Response:
        response = event_loop.submit(requests.send(request))
        try:
            return context.wait_for(response)
        finally:
            response.cancel()  # does nothing where it has ended

    try:
        return list_range(
            ask, side, prefix, payload["first"], payload["last"], most_keys=most_keys, is_enough=is_enough
        )
    except ObjectError as error:
        held = judge_sides(context, {"": error})[""]
        if isinstance(error, AccessDenied):  # here alone, so the batch is refused, and no other
            words = describe_listing(context.migration.plan, side, error.message, prefix)
            raise AccessDenied(error.code, words) from error
        raise held if isinstance(held, ObjectError) else error from error
