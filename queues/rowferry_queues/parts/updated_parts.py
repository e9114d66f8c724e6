"""Parts of a large object that an earlier pass has copied: what has not changed since is copied in place."""

import logging
from collections.abc import Mapping
from typing import NamedTuple

from rowferry.errors import AccessDenied, ObjectNotFound, ObjectRejected, PreconditionFailed, ServerFault
from rowferry.s3.operations import upload_part_copy
from rowferry.s3.results import read_copied_etag
from rowferry_worker.multipart.completion import Part
from rowferry_worker.multipart.side_by_side import PartRange
from rowferry_worker.multipart.streamed_parts import PartTrust, StreamedParts
from rowferry_worker.objects.compare import is_encrypted
from rowferry_worker.objects.digests import hash_body
from rowferry_worker.objects.requests import ObjectRequests, demand

_log = logging.getLogger(__name__)

DIGEST_BYTES = 16
"""Of an MD5."""


class KnownParts(NamedTuple):
    """The production object that an upload replaces, as an earlier pass has left it."""

    bucket: str
    key: str
    etag: str
    digests: Mapping[int, str]
    """The MD5, in hexadecimal, by number, of each part that has the same range in both objects."""


def list_comparable(digests: bytes, old_bytes: int, new_bytes: int, part_bytes: int) -> dict[int, str]:
    """Return the digests of an object's parts, by number, that have the same range in an object of `new_bytes`.

    `digests`: 16 bytes a part, in the order of the parts. The last part of the shorter object has another range, unless
    it is a whole part or the sizes are equal: S3 knows no part that is copied from less than its own range.
    """
    shared = min(old_bytes, new_bytes) // part_bytes if old_bytes != new_bytes else -(-old_bytes // part_bytes)
    return {
        number + 1: digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES].hex()
        for number in range(min(shared, len(digests) // DIGEST_BYTES))
    }


async def send_if_changed(
    s3: ObjectRequests, parts: StreamedParts, known: KnownParts, upload_id: str, part: PartRange
) -> tuple[Part, bool]:
    """Read a part, and send it only if its MD5 is another now; else have it copied in place. Return whether it was.

    A part that is not known is passed on while it is read, as those of a first copy. Raises ServerFault where another
    object stands there now.
    """
    expected = known.digests.get(part.number)
    if expected is None:
        return await parts.send(upload_id, part), False
    with await parts.bodies.hold(part.size_bytes):
        body = await parts.read(part.first, part.last)
        digest = await hash_body(body)
        if digest == expected and parts.trust.copies_in_place:
            copied = await _copy(s3, parts.trust, known, upload_id, part)
            if copied is not None:
                return copied, True
        return await parts.send_body(upload_id, part, body, digest), False


async def _copy(
    s3: ObjectRequests, trust: PartTrust, known: KnownParts, upload_id: str, part: PartRange
) -> Part | None:
    """Have a known part copied from the object that is to be replaced; None where it must be sent.

    The server has to tell the MD5 of what it has copied: a promise to heed the condition is not enough.
    """
    digest = known.digests[part.number]
    request = upload_part_copy(
        known.key,
        source_bucket=known.bucket,
        source_key=known.key,
        source_etag=known.etag,
        first_byte=part.first,
        last_byte=part.last,
        upload_id=upload_id,
        part_number=part.number,
    )
    try:
        response = await s3.send(request)
        etag = demand(read_copied_etag, response, request)
    except (PreconditionFailed, ObjectNotFound, ObjectRejected, AccessDenied, ServerFault) as error:
        if error.code == "NoSuchUpload":
            raise
        reason = str(error)
        may_pass = isinstance(error, ServerFault) and error.status >= 300
    else:
        if etag == digest and not is_encrypted(response):
            return Part(part.number, etag, etag)
        reason, may_pass = f"it says that part {part.number} has the ETag {etag}, not {digest}", False
    existing = await s3.find("production", known.key)
    if existing is None or existing.etag != known.etag:  # not every server heeds the condition
        words = f"the production object {known.key!r} was written while parts of it were copied; try again"
        raise ServerFault("CopyGone", words)
    if trust.copies_in_place and not may_pass:
        trust.copies_in_place = False
        fields = {"new_key": known.key, "error": reason}
        _log.warning("the production server does not copy parts in place, so all parts are sent", extra=fields)
    return None
