"""One part of a legacy object that is uploaded while it is read."""

from collections.abc import Sequence

from msgspec.structs import replace

from rowferry.http.stream import BodyStream
from rowferry.s3.operations import get_object
from rowferry.s3.responses import Response
from rowferry_worker.objects.compare import check_range
from rowferry_worker.objects.completion import Large
from rowferry_worker.objects.part_digests import RunningDigest, WholeDigest
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.objects.side_by_side import PartRange


class PipedPart:
    """The body of an UploadPart: each try of the upload reads the range from its first byte."""

    def __init__(self, s3: ObjectRequests, large: Large, part: PartRange, whole: WholeDigest | None) -> None:
        """`whole` is told of all bytes."""
        self.length = part.size_bytes
        self.digest = RunningDigest()
        """Of what the last try has read."""
        self._s3 = s3
        self._large = large
        self._part = part
        self._whole = whole
        self._stream: BodyStream | None = None
        self._pieces: list[bytes] = []
        self._next = part.first

    @property
    def has_read_all(self) -> bool:
        """Return whether the last try has read the whole range: a server may answer before."""
        return self._next > self._part.last

    async def open(self) -> None:
        """Ask for the range. Raises ServerFault when the object is another by now, ObjectDamaged for other bytes."""
        self.close()
        self.digest, self._next = RunningDigest(), self._part.first
        response = await _read_headers(self._s3, self._large, self._part)
        self._stream, self._pieces = response.stream, [response.body] if response.body else []

    async def read(self) -> Sequence[bytes]:
        """Return the next pieces. Raises ObjectDamaged where the body is shorter than its headers said."""
        pieces, self._pieces = self._pieces, []
        if not pieces and self._stream is not None:
            pieces = await self._stream.read()
        await self.digest.add(pieces)
        if self._whole is not None:
            await self._whole.add(self._next, pieces)
        self._next += sum(map(len, pieces))
        return pieces

    def wake(self) -> None:
        """End the wait of `read`."""
        if self._stream is not None:
            self._stream.wake()

    def close(self) -> None:
        """Read no more."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


async def _read_headers(s3: ObjectRequests, large: Large, part: PartRange) -> Response:
    """Return the response to a GET of a part, pinned to the ETag first seen; its body comes as a stream.

    It is tried once: the upload that needs it is tried again.
    """
    span = {"first_byte": part.first, "last_byte": part.last}
    request = replace(get_object("legacy", large.source_key, if_match=large.seen.etag, **span), stream_above=0)
    response = await s3.send_pinned(request, tries=1)
    try:
        check_range(large.seen, request, response, first=part.first, last=part.last)
    except BaseException:
        if response.stream is not None:
            response.stream.close()
        raise
    return response
