"""Completes a multipart upload; where the answer leaves doubt, looks at what stands instead of guessing."""

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from rowferry.errors import Cancelled, CutOff, ObjectDamaged, ObjectError, PreconditionFailed, ServerFault
from rowferry.s3.operations import abort_multipart_upload, complete_multipart_upload
from rowferry.s3.responses import Answer
from rowferry.s3.results import read_completed_etag
from rowferry_worker.objects.compare import are_same, is_digest, is_encrypted
from rowferry_worker.objects.conditional_writes import Guard, Standing
from rowferry_worker.objects.journey import Steps, find, name_place, size_of
from rowferry_worker.objects.patience import TRIES, may_pass

COMPLETE = "CompleteMultipartUpload"
CONDITION_REFUSED = frozenset({"NotImplemented", "InvalidArgument", "HTTP 501"})
"""Error codes by which a server may say that it does not know If-None-Match."""

_COMPOSITE = re.compile(r"[0-9a-f]{32}-\d+")


class Part(NamedTuple):
    """A part that the server has taken."""

    number: int
    etag: str
    """As the server told it, unquoted."""
    digest: str | None
    """The same where it can be the MD5 of the part's bytes."""


class Upload(NamedTuple):
    """An upload whose parts are all there."""

    source_key: str
    seen: Answer
    """The legacy object's HEAD."""
    target_key: str
    id: str
    parts: Sequence[Part]
    checks_digests: bool
    """Whether the digests of the parts were held against bytes that this process has seen."""

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
        return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(self.parts)}"


def complete_upload(upload: Upload, guard: Guard) -> Steps[None]:
    """Put the object together from its parts, after a last look that nothing stands in its place.

    Raises Standing when something does; ObjectDamaged when what was written is not what was sent. An upload that was
    certainly not completed is aborted; one that may have been, or may still be, is left alone.
    """
    try:
        condition = yield from guard.prepare(COMPLETE)
    except ObjectError:
        yield abort_multipart_upload(upload.target_key, upload_id=upload.id)
        raise
    doubt = False
    for tries in range(TRIES):  # the parts are there, and may be many gigabytes
        answer = yield from _send(upload, guard, condition, tries)
        error = _check_completed(upload, answer)
        if error is None:
            return
        doubt = doubt or not _has_ended(answer)
        standing = yield from _look_after(upload, error, doubt)
        if standing is None:
            return
        if (not standing or guard.overwrites) and tries < TRIES - 1 and _may_pass(answer, error):
            continue  # nothing stands there, as a look has just shown
        if not doubt:
            yield abort_multipart_upload(upload.target_key, upload_id=upload.id)
        raise Standing(standing[0]) if standing and not guard.overwrites else error


def _send(upload: Upload, guard: Guard, condition: bool, tries: int) -> Steps[Answer]:
    """Send the request, and once more without the condition to a server that does not know it."""
    parts = [(part.number, part.etag) for part in upload.parts]
    request = complete_multipart_upload(upload.target_key, upload_id=upload.id, parts=parts, if_none_match=condition)
    answer = yield replace(request, tries=tries)
    if condition and answer.error is not None and answer.error.code in CONDITION_REFUSED:
        request = complete_multipart_upload(upload.target_key, upload_id=upload.id, parts=parts, if_none_match=False)
        answer = yield request
        if answer.error is None:
            guard.note_refused(COMPLETE)
    if answer.error is not None:
        name_place(answer.error, request)
    return answer


def _look_after(upload: Upload, error: ObjectError, doubt: bool) -> Steps[list[Answer] | None]:
    """Return None when the object stands that the upload was to become; else a list of what stands in its place.

    Raises `error` when that cannot be found out. A worker that is told to stop looks no more.
    """
    if isinstance(error, (Cancelled, CutOff)):
        raise error
    try:
        found = yield from find("production", upload.target_key)
        if found is not None and (yield from _is_ours(upload, found, refused=isinstance(error, PreconditionFailed))):
            return None
    except Cancelled:
        raise
    except ObjectError as trouble:
        if not doubt:
            yield abort_multipart_upload(upload.target_key, upload_id=upload.id)
        raise error from trouble
    return [] if found is None else [found]


def _is_ours(upload: Upload, found: Answer, *, refused: bool) -> Steps[bool]:
    """Return whether the object found is made of the upload's parts, or has their bytes at least.

    `refused`: the server says that an object stood there; then it is for the caller to compare bytes.
    """
    if size_of(found) != size_of(upload.seen):
        return False
    composite = upload.composite_etag()
    if composite is not None and found.etag == composite:
        return True
    if refused or (upload.checks_digests and composite is not None and is_digest(found)):
        return False
    return (yield from are_same(upload.source_key, upload.seen, upload.target_key, found))


def _check_completed(upload: Upload, answer: Answer) -> ObjectError | None:
    """Return None when the server says that it has put the object together, else why that is in doubt.

    Raises ObjectDamaged when the whole object's ETag is made of its parts' MD5s, and not of those we hold.
    """
    if answer.error is not None:
        return answer.error
    try:
        told = read_completed_etag(answer)
    except ServerFault as error:
        return error
    if told is None:
        return ServerFault("UnreadableAnswer", "the server did not name the ETag of what it has completed")
    composite = upload.composite_etag()
    is_comparable = upload.checks_digests and _COMPOSITE.fullmatch(told) and not is_encrypted(answer)
    if is_comparable and composite is not None and told != composite:
        raise ObjectDamaged("DigestMismatch", f"the object written should have ETag {composite}, it has {told}")
    return None


def _has_ended(answer: Answer) -> bool:
    """Return whether the server itself has refused, so that nothing more comes of the request.

    A 200 that cannot be read, a time-out, a lost connection and the 5xx of a proxy leave that open.
    """
    return answer.error is not None and answer.status >= 300 and not answer.error.code.startswith("HTTP 5")


def _may_pass(answer: Answer, error: ObjectError) -> bool:
    """Return whether it may help to ask again: the pause is over already. A 200 that cannot be read is doubtful."""
    return (answer.error is None or may_pass(answer)) and error.code != "NoSuchUpload"
