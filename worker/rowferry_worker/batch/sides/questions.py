"""What is asked of the servers where a side may be at fault: operations that failed, of keys where they should succeed.

No question writes an object, and none writes to the legacy side.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rowferry.errors import RESPONSE_TOO_LONG, BucketNotFound, ObjectError, ObjectNotFound, ServerFault, UsageError
from rowferry.http import event_loop
from rowferry.plan import Plan, SideName
from rowferry.s3.client import check_bucket
from rowferry.s3.operations import (
    REQUESTER_PAYS,
    Pairs,
    Request,
    abort_multipart_upload,
    copy_object,
    create_multipart_upload,
    digest_header,
    get_object,
    get_object_acl,
    get_object_tagging,
    head_object,
    put_object,
    put_object_tagging,
    upload_part,
    upload_part_copy,
)
from rowferry.s3.properties import write_headers
from rowferry.s3.responses import BOTH_SIDES, read_text
from rowferry_worker.batch.sides.judgement import Answer, read_answer
from rowferry_worker.migration import MigrationContext
from rowferry_worker.objects.requests import NO_OBJECT
from rowferry_worker.scheduling.evidence import READS, Operation

_READS: Mapping[str, Callable[[SideName, str], Request]] = {
    "HeadObject": head_object,
    "GetObject": get_object,
    "GetObjectTagging": get_object_tagging,
    "GetObjectAcl": get_object_acl,
}
_WRITES = frozenset({"PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"})
_VERSIONS = {"PutObjectTagging": None, "PutObjectVersionTagging": "null"}
"""The version that a request names which needs the right: "null" is one in every bucket, as S3 writes it."""
_NO_WRITE = "rowferry-asks-whether-it-may-write"
"""The key of a PutObject that is refused, since its conditions do not hold."""
_REFUSED = ("If-Match", '"rowferry"'), digest_header(b"another body")
_FEW_BYTES = b"rowferry"


@dataclass(frozen=True, slots=True)
class Suspicion:
    """An operation of a side that failed, or that was denied."""

    operation: Operation
    is_denied: bool

    @property
    def is_read(self) -> bool:
        """Whether it reads an object, and nothing else."""
        return self.operation[1] in READS

    @property
    def reads_as_well(self) -> bool:
        """Whether it writes one side, and a refusal may be that of the legacy object."""
        return self.operation[1] in BOTH_SIDES


READING = Suspicion(("legacy", "HeadObject"), is_denied=True)
"""What a refused copy may come of, beside the right to write."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request, and what its response means."""

    request: Request
    part: Callable[[str], Request] | None = None
    """A request for the upload that was begun, which is aborted in any case."""
    has_object: bool = True
    """Whether there may be a success: an S3 server has no object for the key of any other question."""
    counts_missing: bool = False
    """Whether the server works as well where it says that there is no object."""


def ask_of_nothing(plan: Plan, suspicion: Suspicion) -> Question:
    """Return the question about a key without an object."""
    side, name = suspicion.operation
    side = side or "production"
    match name:
        case "GetObjectTagging" | "GetObjectAcl":
            return Question(_READS[name](side, NO_OBJECT), has_object=False)
        case "HeadObject" | "GetObject" | "ListObjectsV2":
            return Question(head_object(side, NO_OBJECT), has_object=False)
        case "PutObjectTagging" | "PutObjectVersionTagging":
            # Sent only where tags were read before, so no server takes it for an object.
            return Question(put_object_tagging(NO_OBJECT, (), version=_VERSIONS[name]))
        case "CopyObject" | "UploadPartCopy":
            return _copy_nothing(plan, NO_OBJECT)
        case "PutObject" if not suspicion.is_denied:
            return Question(put_object(_NO_WRITE, _FEW_BYTES, headers=_REFUSED, if_none_match=False))
        case _:
            return _begin_upload(plan, NO_OBJECT)


def ask_of_object(plan: Plan, suspicion: Suspicion, legacy: str | None, production: str | None) -> Question | None:
    """Return the question about an object that the operation should succeed for; None where its key is not known."""
    side, name = suspicion.operation
    key = legacy if side == "legacy" else production
    if suspicion.is_read:
        is_usual = side != "legacy" and not suspicion.is_denied  # before an object is written, it is not there
        return None if key is None else Question(_READS[name](side or "production", key), counts_missing=is_usual)
    if suspicion.reads_as_well and not suspicion.is_denied:
        return None if legacy is None else _begin_upload(plan, production or NO_OBJECT, _copy_part_of(plan, legacy))
    if name in _WRITES and not suspicion.is_denied:
        return _begin_upload(plan, production or NO_OBJECT, _send_part)
    if production is None or name not in _WRITES | BOTH_SIDES:
        return None
    return _copy_nothing(plan, production) if suspicion.reads_as_well else _begin_upload(plan, production)


def _copy_nothing(plan: Plan, target: str) -> Question:
    headers = [*_pay(plan), *write_headers(plan.production)]
    bucket = plan.legacy.bucket
    request = copy_object(target, source_bucket=bucket, source_key=NO_OBJECT, if_none_match=True, headers=headers)
    return Question(request, has_object=False)


def _begin_upload(plan: Plan, key: str, part: Callable[[str, str], Request] | None = None) -> Question:
    request = create_multipart_upload(key, headers=write_headers(plan.production))
    return Question(request, None if part is None else lambda upload_id: part(key, upload_id))


def _send_part(key: str, upload_id: str) -> Request:
    return upload_part(key, _FEW_BYTES, upload_id=upload_id, part_number=1, headers=[digest_header(_FEW_BYTES)])


def _copy_part_of(plan: Plan, legacy: str) -> Callable[[str, str], Request]:
    def copy_part(key: str, upload_id: str) -> Request:
        return upload_part_copy(
            key,
            source_bucket=plan.legacy.bucket,
            source_key=legacy,
            source_etag=None,
            first_byte=0,
            last_byte=0,
            upload_id=upload_id,
            part_number=1,
            headers=_pay(plan),
        )

    return copy_part


def _pay(plan: Plan) -> Pairs:
    return (REQUESTER_PAYS,) if plan.legacy.requester_pays else ()


def ask(migration: MigrationContext, questions: Iterable[Question]) -> list[Answer]:
    """Return the answer to each question; all are asked at once."""
    return event_loop.run(_ask_all(migration, tuple(questions)))


async def _ask_all(migration: MigrationContext, questions: Sequence[Question]) -> list[Answer]:
    return await asyncio.gather(*[_ask(migration, each) for each in questions])


async def _ask(migration: MigrationContext, question: Question) -> Answer:
    if question.request.side not in migration.clients:  # as of a queue of one side
        return Answer.OTHER
    try:
        response = await migration.send(question.request)
        if question.request.operation == "CreateMultipartUpload":
            return await _end_upload(migration, question, read_text(response.body, "UploadId"))
        if not question.has_object:
            raise ServerFault("NoS3Server", "the server has an object for every key, so it is not an S3 server")
    except ObjectError as error:
        is_well = error.code == RESPONSE_TOO_LONG or (question.counts_missing and isinstance(error, ObjectNotFound))
        return Answer.WORKS if is_well else read_answer(error)
    return Answer.WORKS


async def _end_upload(migration: MigrationContext, question: Question, upload_id: str | None) -> Answer:
    if upload_id is None:
        return Answer.DOWN
    key, answer = question.request.key, Answer.WORKS
    try:
        if question.part is not None:
            await migration.send(question.part(upload_id))
    except ObjectError as error:
        answer = read_answer(error)
    try:
        await migration.send(abort_multipart_upload(key, upload_id=upload_id))
    except ObjectError:
        return answer
    return answer


def look_up_objects(migration: MigrationContext, keys: Iterable[str]) -> list[Any]:
    """Return the response to a HEAD of each legacy key, or its error."""

    async def look_up() -> list[Any]:
        requests = [migration.send(head_object("legacy", key)) for key in keys]
        return await asyncio.gather(*requests, return_exceptions=True)

    return event_loop.run(look_up())


def are_reachable(migration: MigrationContext) -> bool:
    """Return whether both servers respond as S3 servers do, now; waits for at most the deadline of a request."""
    return Answer.DOWN not in ask(migration, [Question(head_object(side, NO_OBJECT)) for side in migration.clients])


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
