"""Questions to the servers of a migration: whether one is there, whether a right is revoked or a bucket gone."""

import asyncio
from collections.abc import Iterable

from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    Cancelled,
    ObjectError,
    ObjectNotFound,
    ServerFault,
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
from rowferry.s3.responses import BOTH_SIDES, Response, read_text
from rowferry_worker.migration import MigrationContext
from rowferry_worker.objects.requests import NO_OBJECT
from rowferry_worker.scheduling.evidence import READS, is_suspect, name_operation

_OTHER_READS = {"GetObjectTagging": get_object_tagging, "GetObjectAcl": get_object_acl}
"""Reads that need a right of their own."""
_WRITES = frozenset(
    {"PutObject", "CopyObject", "CreateMultipartUpload", "UploadPart", "UploadPartCopy", "CompleteMultipartUpload"}
)
"""Operations for which the right to write objects is enough."""
_VERSIONS = {"PutObjectTagging": None, "PutObjectVersionTagging": "null"}
"""The version that a request names which needs the right: "null" is one in every bucket, as S3 writes it."""


def ask_all(migration: MigrationContext, requests: Iterable[Request]) -> list[object]:
    """Return the response to each request, or the error that came of it."""
    return event_loop.run(_gather(migration, requests))


async def _gather(migration: MigrationContext, requests: Iterable[Request]) -> list[object]:
    return await asyncio.gather(*map(migration.send, requests), return_exceptions=True)


def are_reachable(migration: MigrationContext) -> bool:
    """Return whether both servers respond as S3 servers do, now; waits for at most the deadline of a request."""
    requests = [head_object(side, NO_OBJECT) for side in migration.clients]
    results = ask_all(migration, requests)
    away = (Unreachable, TimedOut, Cancelled)
    return not any(
        isinstance(result, ObjectError) and (isinstance(result, away) or is_suspect(result)) for result in results
    )


def is_revoked(migration: MigrationContext, denied: AccessDenied) -> bool:
    """Return whether an operation that was denied for an object is denied for others as well."""
    only_reads = denied.operation in READS
    if only_reads and (is_allowed := _may_still_read(migration)) is not None:
        return not is_allowed
    answer = ask_without_object(migration, denied)
    if isinstance(answer, AccessDenied):
        return answer.operation != "AbortMultipartUpload"
    # Who may list a bucket may be told that a key names no object, and yet read none.
    is_hidden = isinstance(answer, ObjectNotFound) and (only_reads or denied.operation in BOTH_SIDES)
    return is_hidden and migration.evidence.is_denied(name_operation(denied)) and not _may_still_read(migration)


def is_denied_now(migration: MigrationContext, denied: AccessDenied) -> bool:
    """Return whether what has worked for an object is denied for that very object now; False where none is known.

    Reads are asked again of the legacy object that was read last, writes by an upload that is aborted at once.
    """
    readable, is_write = migration.evidence.readable, denied.operation in _WRITES
    has_both = len(migration.clients) == 2  # a queue of one side may lack the rights that the questions need
    if readable is None or not has_both or not (is_write or denied.operation in READS):
        return False
    questions = [head_object("legacy", readable)]
    if denied.side == "legacy" and denied.operation in _OTHER_READS:
        questions.append(_OTHER_READS[denied.operation]("legacy", readable))
    answers = ask_all(migration, questions)
    if is_write:
        answers.append(_ask(migration, "production", _begin_upload(migration.plan)))
    return any(isinstance(answer, AccessDenied) and answer.operation != "AbortMultipartUpload" for answer in answers)


def _may_still_read(migration: MigrationContext) -> bool | None:
    """Return whether a legacy object may still be read that was read before; None where none is known."""
    readable = migration.evidence.readable
    if readable is None:
        return None
    (answer,) = ask_all(migration, [head_object("legacy", readable)])
    return not isinstance(answer, AccessDenied) if isinstance(answer, (AccessDenied, Response)) else None


def ask_without_object(migration: MigrationContext, refused: ObjectError) -> ObjectError | None:
    """Return how the server refuses what it refused for an object when there is none; None where it does not.

    The request writes no object.
    """
    side = refused.side or "production"
    return _ask(migration, side, _choose_request(migration.plan, side, refused.operation))


def _ask(migration: MigrationContext, side: SideName, request: Request) -> ObjectError | None:
    client = migration.clients[side]
    try:
        response = client.ask(request)
        if upload_id := read_text(response.body, "UploadId"):
            client.ask(abort_multipart_upload(NO_OBJECT, upload_id=upload_id))
    except ObjectError as error:
        return error
    if upload_id or request.operation == "PutObjectTagging":
        return None
    return ServerFault("NoS3Server", "the server has an object for every key, so it is not an S3 server")


def _choose_request(plan: Plan, side: SideName, refused: str) -> Request:
    """Return a request that needs the same right as a refused operation, about a key without an object."""
    match refused:
        case "HeadObject" | "GetObject" | "ListObjectsV2":
            return head_object(side, NO_OBJECT)
        case "GetObjectTagging":
            return get_object_tagging(side, NO_OBJECT)
        case "GetObjectAcl":
            return get_object_acl(side, NO_OBJECT)
        case "PutObjectTagging" | "PutObjectVersionTagging":
            # Sent only where tags were read before, so no server takes it for an object.
            return put_object_tagging(NO_OBJECT, (), version=_VERSIONS[refused])
        case "CopyObject" | "UploadPartCopy":
            source = plan.legacy.bucket
            payer = [REQUESTER_PAYS] if plan.legacy.requester_pays else []
            headers = [*payer, *write_headers(plan.production)]
            return copy_object(
                NO_OBJECT, source_bucket=source, source_key=NO_OBJECT, if_none_match=True, headers=headers
            )
        case _:
            return _begin_upload(plan)


def _begin_upload(plan: Plan) -> Request:
    return create_multipart_upload(NO_OBJECT, headers=write_headers(plan.production))


def find_lost_bucket(migration: MigrationContext) -> BucketNotFound | None:
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
