"""Parts of a large object that the production server copies itself."""

from collections.abc import Sequence

from rowferry.errors import ObjectRejected
from rowferry.s3.operations import upload_part_copy
from rowferry.s3.results import read_copied_etag
from rowferry_worker.multipart.completion import Large, Part
from rowferry_worker.multipart.side_by_side import PartRange
from rowferry_worker.objects.compare import is_encrypted
from rowferry_worker.objects.requests import ObjectRequests, demand, object_changed

_BEYOND_THE_END = frozenset({"InvalidArgument", "InvalidRange"})
"""Error codes by which a server may say that a legacy object has become shorter than the part that is to be copied."""


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

    async def send(self, upload_id: str, part: PartRange, listed: str | None = None) -> Part:
        """Have one part copied, pinned to the ETag that the first look saw."""
        del listed
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
