"""Both sides are one endpoint: the production server copies an object itself."""

from collections.abc import Sequence

from rowferry.errors import ObjectError, ObjectRejected
from rowferry.s3.operations import COPY_LIMIT_BYTES, REQUESTER_PAYS, copy_object, upload_part_copy
from rowferry.s3.responses import Response
from rowferry.s3.results import read_copied_etag
from rowferry.s3.retry import TRIES
from rowferry_worker.copying.transfer import ObjectWrite, PlainCopy, Written, transfer_parts
from rowferry_worker.multipart.completion import Large, Part
from rowferry_worker.multipart.part_size import COPY_PART_BYTES
from rowferry_worker.multipart.side_by_side import PartRange
from rowferry_worker.multipart.streamed_parts import PartSource
from rowferry_worker.objects.compare import is_encrypted
from rowferry_worker.objects.conditional_writes import WriteOperation
from rowferry_worker.objects.intents import go_on_over, write_object
from rowferry_worker.objects.own_copies import OwnDamage
from rowferry_worker.objects.requests import ObjectRequests, demand, object_changed, size_of
from rowferry_worker.properties.settle import Description

_BEYOND_THE_END = frozenset({"InvalidArgument", "InvalidRange"})
"""Error codes by which a server may say that a legacy object has become shorter than the part that is to be copied."""


class ServerCopy:
    """Both sides are one endpoint: CopyObject, or UploadPartCopy where the object is too large for it."""

    operation: WriteOperation = "CopyObject"
    moves_bytes = False
    keeps_class = True

    def __init__(self, legacy_bucket: str, threshold_bytes: int | None = None, *, requester_pays: bool = False) -> None:
        """Name the bucket to copy from; `threshold_bytes`: larger objects go part by part, None: the server decides.

        `requester_pays`: the legacy bucket demands that.
        """
        self.damage = OwnDamage()
        self._bucket = legacy_bucket
        self._threshold_bytes = threshold_bytes
        self._source_headers = [REQUESTER_PAYS] if requester_pays else []

    @property
    def plain_copy(self) -> PlainCopy | None:
        """Return what all requests have; None where each object's size is asked for first, or damage is known."""
        if self._threshold_bytes is not None or self.damage.is_known:
            return None
        return PlainCopy(self._bucket, tuple(self._source_headers))

    @property
    def smallest_parts(self) -> int:
        """Return the size of the parts: they cost this process nothing, so few are best."""
        return min(COPY_PART_BYTES, self._threshold_bytes or COPY_PART_BYTES)

    def part_source(self, s3: ObjectRequests, large: Large) -> PartSource:
        """Return what has parts copied."""
        return CopiedParts(s3, self._bucket, large, self._source_headers)

    async def transfer(self, write: ObjectWrite) -> Written:
        """Ask the production server for a copy."""
        return await self.damage.note(write.target.key, self._transfer(write))

    async def _transfer(self, write: ObjectWrite) -> Written:
        seen = None
        if self._threshold_bytes is not None or write.properties.need_metadata:
            seen = await write.s3.head("legacy", write.source_key)
            if self._threshold_bytes is not None and size_of(seen) > self._threshold_bytes:
                return await self._transfer_parts(write, seen)
        try:
            described, etag, copied = await self._copy(write, seen)
        except ObjectError as error:
            if error.code not in {"EntityTooLarge", "InvalidRequest"}:
                raise
            seen = await write.s3.head("legacy", write.source_key)
            if not _refuses_size(error, size_of(seen)):
                raise
        else:
            await write.properties.settle(write.s3, write.target.key, described, "CopyObject")
            return Written(0, "CopyObject", etag, copied)
        return await self._transfer_parts(write, seen)

    async def _copy(self, write: ObjectWrite, seen: Response | None) -> tuple[Description, str, str]:
        """Have an object copied; return what it shall be, its ETag and that of its source.

        The last is empty where it is not known. Where the request tells the metadata, it is pinned to the object that
        has them. Not every server heeds that: if it has copied a later one, the copy is repeated with the metadata of
        that.
        """
        s3, source_key, properties = write.s3, write.source_key, write.properties
        pinned, intent = seen if properties.need_metadata else None, write.intent
        for _ in range(TRIES):
            described = await properties.describe_copy(s3, source_key, pinned)
            request = copy_object(
                write.target.key,
                source_bucket=self._bucket,
                source_key=source_key,
                source_etag=pinned and pinned.etag,
                if_none_match=False,
                headers=[*self._source_headers, *described.headers],
            )
            etag, _ = await write_object(write.target, intent, request, read_copied_etag)
            if pinned is None or etag == pinned.etag:
                return described, etag, etag if pinned is not None else ""
            now = await s3.head("legacy", source_key)
            if now.etag == pinned.etag:
                return described, etag, now.etag or ""
            pinned, intent = now, go_on_over(intent, etag)
        raise object_changed("legacy", source_key)

    async def _transfer_parts(self, write: ObjectWrite, seen: Response) -> Written:
        """Have the server copy the object part by part, each pinned to the ETag first seen, and look at the whole."""
        large = Large(write.source_key, seen, write.target.key)
        source = self.part_source(write.s3, large)
        return await transfer_parts(write, large, source, self.smallest_parts, keep_class=True)


def _refuses_size(refusal: ObjectError, size_bytes: int) -> bool:
    """Return whether CopyObject was refused for the object's size: InvalidRequest has a hundred other reasons."""
    return size_bytes > (0 if refusal.code == "EntityTooLarge" else COPY_LIMIT_BYTES)


class CopiedParts:
    """The production server copies the parts itself."""

    checks_digests = False

    def __init__(
        self, s3: ObjectRequests, legacy_bucket: str, large: Large, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Name the bucket to copy from; `headers` go with each part."""
        self._s3 = s3
        self._bucket = legacy_bucket
        self._large = large
        self._headers = headers

    async def send(self, upload_id: str, part: PartRange) -> Part:
        """Have one part copied, pinned to the ETag that the first look saw."""
        request = upload_part_copy(
            self._large.target_key,
            source_bucket=self._bucket,
            source_key=self._large.source_key,
            source_etag=self._large.seen.etag or "",
            first_byte=part.first,
            last_byte=part.last,
            upload_id=upload_id,
            part_number=part.number,
            headers=self._headers,
        )
        try:
            response = await self._s3.send_pinned(request)
        except ObjectRejected as error:
            if error.code in _BEYOND_THE_END:
                await self.check_source()
            raise
        etag = demand(read_copied_etag, response, request)
        return Part(part.number, etag, None if is_encrypted(response) else etag)

    async def check_source(self) -> None:
        """Look at the legacy object again: not every server heeds x-amz-copy-source-if-match.

        All parts are copied by now, so what is written to it later does no harm.
        """
        key, seen, _ = self._large
        now = await self._s3.head("legacy", key)
        if (now.etag, now.content_length) != (seen.etag, seen.content_length):
            raise object_changed("legacy", key)

    def skip_whole(self) -> None:
        """Do nothing: no bytes pass here."""
