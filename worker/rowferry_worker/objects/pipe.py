"""A body that is written while it is read; no more of it is in memory than what is on its way."""

import time
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from rowferry.errors import PreconditionFailed
from rowferry.http.connection import UNREAD_BYTES
from rowferry.http.pipe import Pipe
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


class ObjectPipe(Pipe):
    """An object that is written while it is read."""

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

        `checks_read`: hold the bytes against the ETag, which is their MD5; `before_end`: further checks, awaited before
        the last piece is written. `trial` is told what passes, and may end it.
        """
        super().__init__(stream.length, stream)
        self._s3 = s3
        pin = ("If-Match", f'"{response.etag}"')
        self._read_again = replace(read, headers=(*read.headers, pin), stream_above=0)
        self._etag = response.etag
        self._expected = md5_of(response)
        self._checks_read = checks_read
        self._before_end = before_end
        self._trial = trial

    async def ask(self) -> BodyStream | bytes:
        """Return the body of a new GET, sent once for each try of the write.

        Raises ServerFault when the object is another by now.
        """
        try:
            response = await self._s3.send(self._read_again, tries=1)
        except PreconditionFailed as error:
            raise object_changed("legacy", self._read_again.key) from error
        if response.body_bytes == self.length and response.etag == self._etag:
            return response.stream or response.body
        if response.stream is not None:
            response.stream.close()
        raise object_changed("legacy", self._read_again.key)

    def begin(self) -> None:
        """Begin with an empty digest, and a new trial."""
        self._digest = start_md5()
        if self._trial is not None:
            self._trial.begin()

    def note(self, piece: bytes) -> None:
        """Take a piece into the digest. Raises TooSlow when the connection is given up."""
        if self._trial is not None:
            self._trial.note(len(piece), time.monotonic())
        if self._checks_read:
            self._digest.update(piece)

    async def end(self) -> None:
        """Raise ObjectDamaged where the whole is not what its ETag says, and what the further checks raise."""
        if self._checks_read and self._digest.hexdigest() != self._expected:
            raise name_request(mismatch("read", self._digest.hexdigest(), self._expected), self._read_again)
        await self._before_end()
