"""Parts of a large object that an earlier pass has copied: what has not changed since is copied in place."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from rowferry.errors import AccessDenied, ObjectNotFound, ObjectRejected, PreconditionFailed, ServerFault
from rowferry.s3.operations import upload_part_copy
from rowferry.s3.results import read_copied_etag
from rowferry_worker.multipart.completion import Large, Part
from rowferry_worker.multipart.side_by_side import PartRange
from rowferry_worker.multipart.streamed_parts import StreamedParts
from rowferry_worker.objects.compare import is_encrypted
from rowferry_worker.objects.digests import hash_body
from rowferry_worker.objects.requests import ObjectRequests, demand

_log = logging.getLogger(__name__)

DIGEST_BYTES = 16
"""Of an MD5."""


@dataclass(frozen=True, slots=True)
class KnownParts:
    """The production object that an upload replaces, as an earlier pass has left it."""

    bucket: str
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


class UpdatedParts:
    """Reads each part that an earlier pass has copied, and sends it only if its MD5 is another now.

    Any other part is passed on while it is read, as those of a first copy.
    """

    checks_digests = True

    def __init__(self, s3: ObjectRequests, large: Large, parts: StreamedParts, known: KnownParts) -> None:
        """`parts` sends what has changed, or is not known."""
        self._s3 = s3
        self._large = large
        self._parts = parts
        self._known = known
        self.unchanged: set[int] = set()
        """The numbers of the parts that were copied in place."""

    async def check_source(self) -> None:
        """Do nothing: each part came with the ETag first seen."""

    def skip_whole(self) -> None:
        """Do nothing: no process sees the whole."""

    async def send(self, upload_id: str, part: PartRange, listed: str | None = None) -> Part:
        """Send one part, or have it copied in place. Raises ServerFault where another object stands there now."""
        expected = self._known.digests.get(part.number)
        if expected is None:
            return await self._parts.send(upload_id, part, listed)
        with await self._parts.bodies.hold(part.size_bytes):
            body = await self._parts.read(part.first, part.last)
            digest = await hash_body(body)
            if digest == expected and self._parts.trust.copies_in_place:
                copied = await self._copy(upload_id, part, digest)
                if copied is not None:
                    self.unchanged.add(part.number)
                    return copied
            return await self._parts.send_body(upload_id, part, body, digest)

    async def _copy(self, upload_id: str, part: PartRange, digest: str) -> Part | None:
        """Have a part copied from the object that is to be replaced; None where it must be sent.

        The server has to tell the MD5 of what it has copied: a promise to heed the condition is not enough.
        """
        key = self._large.target_key
        request = upload_part_copy(
            key,
            source_bucket=self._known.bucket,
            source_key=key,
            source_etag=self._known.etag,
            first_byte=part.first,
            last_byte=part.last,
            upload_id=upload_id,
            part_number=part.number,
        )
        try:
            response = await self._s3.send(request)
            etag = demand(read_copied_etag, response, request)
        except (PreconditionFailed, ObjectNotFound, ObjectRejected, AccessDenied, ServerFault) as error:
            if error.code == "NoSuchUpload":
                raise
            await self._look_at_source()
            if not isinstance(error, ServerFault) or error.status < 300:  # any other may pass
                self._distrust(key, str(error))
            return None
        if etag == digest and not is_encrypted(response):
            return Part(part.number, etag, etag)
        await self._look_at_source()
        self._distrust(key, f"it says that part {part.number} has the ETag {etag}, not {digest}")
        return None

    async def _look_at_source(self) -> None:
        """Raise ServerFault where another object stands there now: not every server heeds the condition."""
        key = self._large.target_key
        existing = await self._s3.find("production", key)
        if existing is None or existing.etag != self._known.etag:
            raise _copy_gone(key)

    def _distrust(self, key: str, reason: str) -> None:
        if self._parts.trust.copies_in_place:
            self._parts.trust.copies_in_place = False
            fields = {"new_key": key, "error": reason}
            _log.warning("the production server does not copy parts in place, so all parts are sent", extra=fields)


def _copy_gone(key: str) -> ServerFault:
    return ServerFault(
        "CopyGone", f"the production object {key!r} was written while parts of it were copied; try again"
    )
