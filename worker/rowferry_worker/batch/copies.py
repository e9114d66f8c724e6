"""Step 3 of 5: run the copies of a batch on the event loop, and tell a side's fault from an object's."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import wait
from datetime import timedelta

from rowferry.batch import Outcome
from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    Cancelled,
    CredentialsUnavailable,
    MigrationFault,
    NotStarted,
    ObjectError,
    ObjectNotFound,
    TimedOut,
    Unreachable,
    UsageError,
)
from rowferry.http import event_loop
from rowferry.plan import Plan, SideName
from rowferry.s3.client import check_bucket
from rowferry.s3.operations import (
    REQUESTER_PAYS,
    Request,
    abort_multipart_upload,
    copy_object,
    create_multipart_upload,
    get_object_acl,
    get_object_tagging,
    head_object,
    put_object_tagging,
)
from rowferry.s3.properties import write_headers
from rowferry.s3.responses import read_text
from rowferry_worker.batch.context import LOOK_UP_EVERY, BatchContext
from rowferry_worker.migration import MigrationContext
from rowferry_worker.objects.copy import CopyResult
from rowferry_worker.objects.requests import NO_OBJECT
from rowferry_worker.objects.scheduler import WHOLE_SIDE, Copy, CopyRun, ObjectResult

_READS = frozenset({"HeadObject", "GetObject", "GetObjectTagging", "GetObjectAcl"})
_VERSIONS = {"PutObjectTagging": None, "PutObjectVersionTagging": "null"}
"""The version that a request names which needs the right: "null" is one in every bucket, as S3 writes it."""
CANCEL_WITHIN = timedelta(seconds=3)
"""How long to wait for the aborts of a batch's multipart uploads once the worker releases it, or has lost it."""


def run_copies(context: BatchContext, copy: Copy, keys: Iterable[str]) -> dict[str, ObjectResult]:
    """Copy the object of each key, many at once, and return how each copy ended; NotStarted past the time budget.

    Raises BatchReleased when the worker gives the batch up meanwhile, MigrationFault when a side is at fault.
    """
    by_key = _wait_for(
        context,
        CopyRun(
            context.scheduler,
            copy,
            keys,
            deadline=context.deadline,
            batch_id=context.batch.id,
            queue=context.batch.queue_name,
        ),
    )
    refuse_side_fault(context.migration, by_key)
    if any(isinstance(result, Unreachable) for result in by_key.values()) and are_reachable(context.migration):
        return {key: _charge_attempt(result) for key, result in by_key.items()}
    return by_key


def _wait_for(context: BatchContext, run: CopyRun) -> dict[str, ObjectResult]:
    """Return how the copies ended. They are cancelled when the batch is released or lost meanwhile."""
    future, alive_at = event_loop.submit(run.run_all()), time.monotonic()
    try:
        while True:
            wait([future], LOOK_UP_EVERY.total_seconds())
            if future.done():  # a TimeoutError of `result` could be that of a copy as well
                return future.result()
            alive_at = context.keep_alive(alive_at)
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


def refuse_side_fault(migration: MigrationContext, by_key: Mapping[str, ObjectResult]) -> None:
    """Raise MigrationFault where a side is at fault: what was copied already is found to be there the next time."""
    tried = [result for result in by_key.values() if not isinstance(result, NotStarted | Cancelled)]
    if fault := next((result for result in tried if isinstance(result, WHOLE_SIDE)), None):
        raise _describe_fault(migration.plan, fault)
    denied = [result for result in tried if isinstance(result, AccessDenied)]
    if denied and _may_be_revoked(denied, tried) and _is_revoked(migration, denied[0]):
        raise _describe_revocation(migration.plan, denied[0])
    if tried and all(isinstance(result, ObjectNotFound) for result in tried) and (lost := _find_lost_bucket(migration)):
        raise _describe_fault(migration.plan, lost)


def are_reachable(migration: MigrationContext) -> bool:
    """Return whether both servers respond to anything at all, now; waits for at most the deadline of a request."""
    return event_loop.run(_try_both_sides(migration))


async def _try_both_sides(migration: MigrationContext) -> bool:
    requests = (client.send(head_object(side, NO_OBJECT)) for side, client in migration.clients.items())
    results = await asyncio.gather(*requests, return_exceptions=True)
    return not any(isinstance(result, (Unreachable, TimedOut, Cancelled)) for result in results)


def _may_be_revoked(denied: Sequence[AccessDenied], tried: Sequence[ObjectResult]) -> bool:
    """Return whether nothing shows that the operation is allowed: no object of the batch got past it."""
    if denied[0].operation in _READS:
        return len(denied) == len(tried)
    return not any(isinstance(result, CopyResult) and result.outcome is Outcome.MIGRATED for result in tried)


def _is_revoked(migration: MigrationContext, denied: AccessDenied) -> bool:
    """Return whether an operation that was denied for an object is denied for a key without one as well.

    The request writes no object.
    """
    client = migration.clients[denied.side or "production"]
    try:
        response = client.ask(_choose_request(migration.plan, denied))
        if upload_id := read_text(response.body, "UploadId"):
            client.ask(abort_multipart_upload(NO_OBJECT, upload_id=upload_id))
    except AccessDenied as error:
        return error.operation != "AbortMultipartUpload"
    except ObjectError:
        return False
    return False


def _choose_request(plan: Plan, denied: AccessDenied) -> Request:
    """Return a request that needs the same right as the one that was denied, about a key without an object."""
    match denied.operation:
        case "HeadObject" | "GetObject":
            return head_object(denied.side or "legacy", NO_OBJECT)
        case "GetObjectTagging":
            return get_object_tagging(denied.side or "legacy", NO_OBJECT)
        case "GetObjectAcl":
            return get_object_acl(denied.side or "legacy", NO_OBJECT)
        case "PutObjectTagging" | "PutObjectVersionTagging":
            # Sent only where tags were read before, so no server takes it for an object.
            return put_object_tagging(NO_OBJECT, (), version=_VERSIONS[denied.operation])
        case "CopyObject" | "UploadPartCopy":
            source = plan.legacy.bucket
            payer = [REQUESTER_PAYS] if plan.legacy.requester_pays else []
            headers = [*payer, *write_headers(plan.production)]
            return copy_object(
                NO_OBJECT, source_bucket=source, source_key=NO_OBJECT, if_none_match=True, headers=headers
            )
        case _:
            return create_multipart_upload(NO_OBJECT, headers=write_headers(plan.production))


def _find_lost_bucket(migration: MigrationContext) -> BucketNotFound | None:
    """Return the error for the first bucket in use that is not there; None when all are, or cannot be asked.

    A HEAD does not tell a missing bucket from a missing object.
    """
    for name in sorted(migration.clients):
        side = migration.plan.side(name)
        try:
            check_bucket(migration.clients[name], side)
        except BucketNotFound as lost:
            lost.side = side.name
            return lost
        except (ObjectError, UsageError):
            continue
    return None


def _describe_fault(plan: Plan, fault: ObjectError) -> MigrationFault:
    passes = isinstance(fault, CredentialsUnavailable)
    remedy = "; create the bucket again, or correct the plan" if isinstance(fault, BucketNotFound) else ""
    words = f"{_name(plan, fault.side)} cannot be used: {str(fault).rstrip('.')}{remedy}"
    return MigrationFault(words, may_pass=passes)


def _describe_revocation(plan: Plan, denied: AccessDenied) -> MigrationFault:
    words = f"{_name(plan, denied.side)} refuses {denied.operation} for any key ({str(denied).rstrip('.')})"
    return MigrationFault(f"{words}; give the credentials that right again (s3:ListBucket as well)")


def _name(plan: Plan, name: SideName | None) -> str:
    if name is None:
        return "one of the buckets"
    side = plan.legacy if name == "legacy" else plan.production
    return f"the {name} bucket {side.bucket}"
