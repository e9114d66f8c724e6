"""Both sides are one endpoint: the production server copies an object itself."""

from rowferry.errors import ObjectError
from rowferry.s3.operations import COPY_LIMIT_BYTES, REQUESTER_PAYS, copy_object
from rowferry.s3.responses import Response
from rowferry.s3.results import read_copied_etag
from rowferry.s3.retry import TRIES
from rowferry_worker.copying.transfer import ObjectWrite, PlainCopy, Written, transfer_parts
from rowferry_worker.multipart.completion import Large
from rowferry_worker.multipart.copied_parts import CopiedParts
from rowferry_worker.multipart.part_size import COPY_PART_BYTES
from rowferry_worker.multipart.streamed_parts import PartSource
from rowferry_worker.objects.conditional_writes import WriteOperation
from rowferry_worker.objects.intents import go_on_over, write_object
from rowferry_worker.objects.own_copies import OwnDamage
from rowferry_worker.objects.requests import ObjectRequests, object_changed, size_of
from rowferry_worker.properties.settle import Description


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

    def part_bytes(self, seen: Response) -> int:
        """Return the size of the parts."""
        del seen
        return self.smallest_parts

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
