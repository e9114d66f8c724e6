"""Batches of objects without rows: a listing of the legacy bucket is cut into ranges, which other batches copy."""

import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import wait
from datetime import timedelta
from typing import Any, Literal

from rowferry.batch import Batch
from rowferry.db.connection import call
from rowferry.errors import AccessDenied, CredentialsUnavailable, MigrationFault, ObjectError
from rowferry.http import event_loop
from rowferry.plan import ObjectPrefix
from rowferry.s3.key_listing import ListedKeys, list_range
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_worker.batch.context import LOOK_UP_EVERY, BatchContext
from rowferry_worker.batch.copies import refuse_side_fault

_log = logging.getLogger(__name__)

LISTED_KEYS = 20_000
LISTED_PAGES = 25
LISTED_WITHIN = timedelta(seconds=5)
"""Bounds of one listing batch, whose transaction is open meanwhile: what comes first ends it."""


def kind_of(batch: Batch) -> Literal["entries", "listing", "range"]:
    """Return what a batch names: entries of a table, objects to be listed, or a range of listed objects."""
    return batch.payload.get("objects", "entries")


def find_prefix(context: BatchContext) -> ObjectPrefix:
    """Return the plan's [[objects]] of a batch. Raises MigrationFault if the plan has none of that name any more."""
    label, plan = context.batch.payload["entries"], context.migration.plan
    found = next((objects for objects in plan.objects if objects.label == label), None)
    if found is None:
        raise MigrationFault(f"The plan of migration {plan.name} has no [[objects]] {label}.")
    return found


def cut_listing(context: BatchContext) -> None:
    """Put a batch in the queue for each range of what a page or more of the listing names, and one for its rest.

    They appear with the verdict on this batch, so that each key is in one of them, wherever a worker is killed.
    """
    payload, soon = context.batch.payload, time.monotonic() + LISTED_WITHIN.total_seconds()
    listed = list_legacy(
        context,
        most_keys=min(LISTED_KEYS, payload.get("limit", LISTED_KEYS)),
        is_enough=lambda page: page > LISTED_PAGES or time.monotonic() > soon,
    )
    (added,) = call(context.connection, "add_ranges", context.batch.id, listed.keys, listed.next)
    fields = {"batch": context.batch.id, "objects": added["entries"], "new_batches": added["batches"]}
    _log.info("objects listed", extra={**fields, "next": listed.next})


def list_legacy(context: BatchContext, *, most_keys: int, is_enough: Callable[[int], bool]) -> ListedKeys:
    """Return the keys of the batch's own range in the legacy bucket, as `list_range` does.

    Raises BatchReleased when the worker gives the batch up meanwhile, MigrationFault when the bucket cannot be used or
    listed.
    """
    payload, prefix, requests = context.batch.payload, find_prefix(context).prefix, context.object_requests()

    def ask(request: Request) -> Response:
        return _wait_for(context, requests.send(request))

    try:
        return list_range(ask, prefix, payload["first"], payload["last"], most_keys=most_keys, is_enough=is_enough)
    except AccessDenied as error:
        if isinstance(error, CredentialsUnavailable):
            refuse_side_fault(context.migration, {"": error})
        bucket, refusal = context.migration.plan.legacy.bucket, str(error).rstrip(".")
        words = f"the legacy bucket {bucket} cannot be listed below {prefix!r}: {refusal}"
        raise MigrationFault(f"{words}; give the legacy credentials s3:ListBucket there") from error
    except ObjectError as error:
        refuse_side_fault(context.migration, {"": error})
        raise


def _wait_for(context: BatchContext, response: Coroutine[Any, Any, Response]) -> Response:
    """Wait for a request; it is cancelled when the batch is released or lost meanwhile."""
    future, alive_at = event_loop.submit(response), time.monotonic()
    try:
        while True:
            wait([future], LOOK_UP_EVERY.total_seconds())
            if future.done():
                return future.result()
            alive_at = context.keep_alive(alive_at)
    finally:
        future.cancel()  # does nothing where it has ended
