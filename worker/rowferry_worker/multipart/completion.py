"""Completes a multipart upload; where the response leaves doubt, looks at what is there instead of guessing."""

import asyncio
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from rowferry.errors import (
    Cancelled,
    CutOff,
    ObjectDamaged,
    ObjectError,
    ObjectNotFound,
    PreconditionFailed,
    ServerFault,
)
from rowferry.s3.errors import UPLOAD_LOST
from rowferry.s3.operations import Request, complete_multipart_upload
from rowferry.s3.responses import Response, name_request
from rowferry.s3.results import read_completed_etag
from rowferry.s3.retry import TRIES, may_pass, pause_before_retry
from rowferry_worker.monitoring import metrics
from rowferry_worker.objects.compare import Pair, are_same, is_digest, is_encrypted
from rowferry_worker.objects.conditional_writes import COMPLETE, CONDITION_REFUSED, ObjectExists
from rowferry_worker.objects.digests import start_md5
from rowferry_worker.objects.intents import Intent, Replace, Target, may_replace
from rowferry_worker.objects.own_copies import DamagedWrite, KnownCopies
from rowferry_worker.objects.requests import ObjectRequests, demand, object_changed, size_of

_COMPOSITE = re.compile(r"[0-9a-f]{32}-\d+")


class Large(NamedTuple):
    """An object that goes part by part."""

    source_key: str
    seen: Response
    """The legacy object's HEAD."""
    target_key: str


class Part(NamedTuple):
    """A part that the server has taken."""

    number: int
    etag: str
    """As the server told it, unquoted."""
    digest: str | None
    """The same where it can be the MD5 of the part's bytes."""


@dataclass(slots=True)
class Upload:
    """An open multipart upload."""

    large: Large
    id: str
    checks_digests: bool
    """Whether the digests of the parts were held against bytes that this process has seen."""
    parts: list[Part] = field(default_factory=list[Part])
    may_be_completed: bool = False
    """Whether the server may have completed it, or may still do so: then it must not be aborted."""

    def composite_etag(self) -> str | None:
        """Return the ETag that the whole will have: the MD5 of the parts' MD5s and their number; None if not known.

        Source: Amazon S3 User Guide, "Checking object integrity".
        """
        try:
            digests = b"".join(bytes.fromhex(part.digest or "?") for part in self.parts)
        except ValueError:
            return None
        if len(digests) != 16 * len(self.parts):
            return None
        return f"{start_md5(digests).hexdigest()}-{len(self.parts)}"


async def complete_upload(target: Target, intent: Intent, upload: Upload, copies: KnownCopies) -> str | None:
    """Put the object together from its parts, after a last look that no other object is in its place.

    Return the ETag that the server told of it, None where it did not. Raises ObjectExists when one is; DamagedWrite
    when what was written is not what was sent. `may_be_completed` of the upload tells afterwards, or when this is
    cancelled, whether it must be left alone.
    """
    s3 = target.s3
    await s3.take_turn("production", COMPLETE)
    await intent.check(target, COMPLETE)
    for tried in range(1, TRIES + 1):  # the parts are there, and may be many gigabytes
        try:
            return await _complete_once(target, intent, upload)
        except (ObjectDamaged, Cancelled, CutOff):
            raise
        except ObjectError as failure:
            error = failure
        is_last = tried == TRIES or not may_pass(error) or error.code in UPLOAD_LOST
        if not is_last:
            await asyncio.sleep(pause_before_retry(error, tried).total_seconds())
            await s3.take_turn("production", COMPLETE)
        is_ours, existing = await _look_after(s3, upload, copies, error)
        if is_ours:
            return None
        if existing is not None and not may_replace(intent, existing):
            raise ObjectExists(existing)
        is_pinned = isinstance(intent, Replace) and target.support.pins_completions
        if existing is not None and is_pinned and error.status == 412 and tried < TRIES:
            target.support.pins_completions = False  # it has just the ETag that was asked for
            continue
        if is_last:
            raise error
        metrics.request_retries.labels("production").inc()
    return None


async def _complete_once(target: Target, intent: Intent, upload: Upload) -> str:
    """Ask for the completion and return the ETag told; `may_be_completed`: whether a refusal leaves that open."""
    was_in_doubt, upload.may_be_completed = upload.may_be_completed, True
    try:
        request, response = await _send(target, intent, upload)
    except ObjectError as error:
        upload.may_be_completed = was_in_doubt or not _is_refused(error)
        raise
    return check_completed(upload, request, response)


async def _send(target: Target, intent: Intent, upload: Upload) -> tuple[Request, Response]:
    """Send the request, and once more without the condition to a server that does not know it."""
    parts = [(part.number, part.etag) for part in upload.parts]
    request = complete_multipart_upload(target.key, upload_id=upload.id, parts=parts, if_none_match=False)
    conditions = intent.headers(target.support, COMPLETE)
    bound = replace(request, headers=(*request.headers, *conditions))
    try:
        return bound, await target.s3.send_once(bound)
    except ObjectNotFound as error:  # Amazon S3, to If-Match: what was to be replaced has gone
        raise object_changed("production", target.key) from error
    except ObjectError as error:
        if not conditions or error.code not in CONDITION_REFUSED:
            raise
    response = await target.s3.send_once(request)
    if isinstance(intent, Replace):
        target.support.pins_completions = False
    else:
        target.support.note(COMPLETE, supported=False)
    return request, response


def check_completed(upload: Upload, request: Request, response: Response) -> str:
    """Return the ETag of what the server says it has put together; raise ServerFault where that is in doubt.

    Raises DamagedWrite when the whole object's ETag is made of its parts' MD5s, and not of those we hold.
    """
    told = demand(read_completed_etag, response, request)
    if told is None:
        words = "the server did not name the ETag of what it has completed"
        raise name_request(ServerFault("UnreadableResponse", words), request)
    composite = upload.composite_etag()
    is_comparable = upload.checks_digests and _COMPOSITE.fullmatch(told) and not is_encrypted(response)
    if is_comparable and composite is not None and told != composite:
        words = f"the object written should have ETag {composite}, it has {told}"
        raise DamagedWrite.named("DigestMismatch", words, told)
    return told


def _is_refused(error: ObjectError) -> bool:
    """Return whether the server itself has refused, so that nothing more comes of the request.

    A 200 with an error in it, a time-out, a lost connection and the 5xx of a proxy leave that open, but for a 200 that
    says what the upload lacks.
    """
    return error.code in UPLOAD_LOST or (error.status >= 300 and not error.code.startswith("HTTP 5"))


async def _look_after(
    s3: ObjectRequests, upload: Upload, copies: KnownCopies, error: ObjectError
) -> tuple[bool, Response | None]:
    """Return whether the object is there that the upload was to become, and the headers of what is there.

    Raises `error` when that cannot be found out.
    """
    key = upload.large.target_key
    try:
        found = await s3.find("production", key)
        if found is None:
            return False, None
        is_refused = isinstance(error, PreconditionFailed)
        return await _is_ours(s3, upload, found, copies, is_refused=is_refused), found
    except Cancelled:
        raise
    except ObjectError as trouble:
        raise error from trouble


async def _is_ours(
    s3: ObjectRequests, upload: Upload, found: Response, copies: KnownCopies, *, is_refused: bool
) -> bool:
    """Return whether the object found is made of the upload's parts, or has their bytes at least.

    `is_refused`: the server says that an object was there; then it is for the caller to compare bytes.
    """
    large, composite = upload.large, upload.composite_etag()
    if size_of(found) != size_of(large.seen):
        return False
    if composite is not None and found.etag == composite:
        return True
    if is_refused or (upload.checks_digests and composite is not None and is_digest(found)):
        return False
    return await are_same(s3, Pair(large.source_key, large.seen, large.target_key, found), copies)
