"""MD5 digests of bodies, of pieces, and of the whole that parts make; beside the event loop where that takes long."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, TypeVar

from rowferry.errors import ObjectDamaged

if TYPE_CHECKING:
    from hashlib import _Hash as Digest  # pyright: ignore[reportPrivateUsage]

T = TypeVar("T")
BESIDE_LOOP_BYTES = 256 * 1024
"""A larger body is hashed on another thread: 0.3 ms, several times what the way there costs."""
HASHING_THREADS = 2


async def hash_body(body: bytes) -> str:
    """Return the MD5 of a body in hexadecimal."""
    if len(body) <= BESIDE_LOOP_BYTES:
        return _hash(body)
    return await run_beside_loop(_hash, body)


async def run_beside_loop(hash_bytes: Callable[..., T], *arguments: Any) -> T:
    """Run a function that hashes on another thread; a few of them serve all bodies."""
    return await asyncio.get_running_loop().run_in_executor(_start_threads(), hash_bytes, *arguments)


def mismatch(what: str, digest: str, told: str | None) -> ObjectDamaged:
    """Return the error of bytes whose MD5 is not what the server says; `what` was done with them: read, written."""
    return ObjectDamaged("DigestMismatch", f"the bytes {what} have MD5 {digest}, the server says {told}")


def start_md5(body: bytes | bytearray = b"") -> "Digest":
    """Return the running MD5 of a body: that S3 checks, and tells as an ETag."""
    return hashlib.md5(body, usedforsecurity=False)


def _hash(body: bytes) -> str:
    return start_md5(body).hexdigest()


@cache
def _start_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(HASHING_THREADS, thread_name_prefix="rowferry-md5")


class WholeDigest:
    """The MD5 of an object whose parts come side by side: what comes early is held until all before it has come."""

    def __init__(self, expected: str) -> None:
        """`expected`: the legacy object's ETag, where that is its MD5."""
        self._expected = expected
        self._digest = start_md5()
        self._early: list[tuple[int, bytes]] = []
        """Pieces and where they begin in the object; a part that is read again brings some twice."""
        self._end = 0
        """So many bytes are hashed, or are with the thread that hashes."""
        self._hashing: asyncio.Task[None] | None = None
        """Hashes what is without a gap, beside the loop."""
        self._grown = asyncio.Condition()

    def add(self, first: int, piece: bytes) -> None:
        """Take a piece of the object that begins at byte `first`."""
        if first + len(piece) > self._end:
            heappush(self._early, (first, piece))
        if self._hashing is None and self._early and self._early[0][0] <= self._end:
            self._hashing = asyncio.create_task(self._hash_ready())

    async def _hash_ready(self) -> None:
        while ready := self._take_ready():
            await run_beside_loop(_update, self._digest, ready)
            async with self._grown:
                self._grown.notify_all()
        self._hashing = None

    def _take_ready(self) -> list[bytes]:
        """Return what follows the bytes that are hashed, without a gap."""
        ready: list[bytes] = []
        while self._early and self._early[0][0] <= self._end:
            first, piece = heappop(self._early)
            unseen = piece[self._end - first :]
            if unseen:
                ready.append(unseen)
                self._end += len(unseen)
        return ready

    async def wait_for(self, end: int) -> None:
        """Wait until the first `end` bytes need not be held any more."""
        async with self._grown:
            await self._grown.wait_for(lambda: self._end >= end)

    async def check(self) -> None:
        """Raise ObjectDamaged where the digest of all is not what was expected. All parts have come."""
        if self._hashing is not None:
            await self._hashing
        found = self._digest.hexdigest()
        if found != self._expected:
            raise mismatch("read", found, self._expected)


def _update(digest: "Digest", pieces: Sequence[bytes]) -> None:
    for piece in pieces:
        digest.update(piece)
