"""A legacy object that is written while it is read; no more of it is in memory than what is on its way."""

import time
from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from rowferry.errors import PreconditionFailed
from rowferry.http.connection import UNREAD_BYTES
from rowferry.http.stream import BodyStream
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response, name_request
from rowferry_worker.objects.compare import md5_of
from rowferry_worker.objects.digests import mismatch, start_md5
from rowferry_worker.objects.link_trial import LinkTrial
from rowferry_worker.objects.requests import ObjectRequests, object_changed

PIPE_BYTES = 2 * UNREAD_BYTES
"""What one pipe holds: what waits to be taken, and what is being written."""
BEGUN_SHARE, MOST_SHARE_BYTES = 8, 24 * 1024 * 1024
"""A pipe's share is an eighth of its object where that is more: of many large objects begun at once none would end.
But a quarter of what bodies mostly may hold at most: one connection alone may be slower than the link."""


def share_of_pipe(size_bytes: int) -> int:
    """Return which share of the memory for bodies a pipe takes for an object of this size."""
    return max(min(size_bytes, PIPE_BYTES), min(size_bytes // BEGUN_SHARE, MOST_SHARE_BYTES))


class PipedBody:
    """The body of a write: that of the GET whose headers have come, or, when the write is tried again, of a new one."""

    def __init__(
        self,
        s3: ObjectRequests,
        read: Request,
        response: Response,
        stream: BodyStream,
        *,
        checks_read: bool,
        before_end: Callable[[], Awaitable[None]],
        trial: LinkTrial | None = None,
    ) -> None:
        """`response` is that of `read`, `stream` its body.

        `checks_read`: hold the bytes against the ETag, which is their MD5, before the last of them are handed on, and
        so is `before_end` awaited, which may raise an ObjectError. `trial` is told what passes, and may end it.
        """
        self.length = stream.length
        self._s3 = s3
        pin = ("If-Match", f'"{response.etag}"')
        self._read_again = replace(read, headers=(*read.headers, pin), stream_above=0)
        self._etag = response.etag
        self._expected = md5_of(response)
        self._checks_read = checks_read
        self._before_end = before_end
        self._trial = trial
        self._stream = stream
        self._is_begun = False

    async def open(self) -> None:
        """Begin at the first byte: with a new GET where the last one was read from.

        Raises ServerFault when the object is another by now.
        """
        if self._is_begun:
            self._stream.close()
            self._stream = await self._ask_again()
        self._is_begun = False
        self._missing = self.length
        self._digest = start_md5()
        if self._trial is not None:
            self._trial.begin()

    async def read(self) -> Sequence[bytes]:
        """Return the next pieces.

        Raises ObjectDamaged instead of the last ones where the whole is not what it was, TooSlow when it is given up.
        """
        self._is_begun = True
        pieces = await self._stream.read()
        size_bytes = sum(map(len, pieces))
        self._missing -= size_bytes
        if self._trial is not None:
            self._trial.note(size_bytes, time.monotonic())
        if self._checks_read:
            self._check(pieces)
        if pieces and not self._missing:
            await self._before_end()
        return pieces

    def wake(self) -> None:
        """End the wait of `read`."""
        self._stream.wake()

    def close(self) -> None:
        """Read no more."""
        self._stream.close()

    def _check(self, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            self._digest.update(piece)
        if not self._missing and self._digest.hexdigest() != self._expected:
            raise name_request(mismatch("read", self._digest.hexdigest(), self._expected), self._read_again)

    async def _ask_again(self) -> BodyStream:
        try:
            response = await self._s3.send(self._read_again, tries=1)  # the write that needs it is tried again
        except PreconditionFailed as error:
            raise object_changed("legacy", self._read_again.key) from error
        stream = response.stream
        if stream is not None and stream.length == self.length and response.etag == self._etag:
            return stream
        if stream is not None:
            stream.close()
        raise object_changed("legacy", self._read_again.key)
