"""MD5 digests of bodies, of pieces, and of the whole that parts make; beside the event loop where that takes long."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from heapq import heappop, heappush
from typing import Any, Protocol, TypeVar

from rowferry.errors import ObjectDamaged

T = TypeVar("T")
BESIDE_LOOP_BYTES = 256 * 1024
"""A larger body is hashed on another thread: 0.3 ms, several times what the way there costs."""
HASHING_THREADS = 2
TOGETHER_BYTES = 1024 * 1024
"""So much is hashed at once: the way to another thread costs as much as hashing a twentieth of it."""


class Digest(Protocol):
    """A hash that is under way."""

    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


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


def start_md5(body: bytes | bytearray = b"") -> Digest:
    """Return the running MD5 of a body: that S3 checks, and tells as an ETag."""
    return hashlib.md5(body, usedforsecurity=False)


def _hash(body: bytes) -> str:
    return start_md5(body).hexdigest()


@cache
def _start_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(HASHING_THREADS, thread_name_prefix="rowferry-md5")


class RunningDigest:
    """The MD5 of a body that comes in pieces."""

    def __init__(self) -> None:
        self._digest = start_md5()
        self._pieces: list[bytes] = []
        self._size = 0

    async def add(self, pieces: Sequence[bytes]) -> None:
        """Take the next pieces into the digest."""
        self._pieces.extend(pieces)
        self._size += sum(map(len, pieces))
        if self._size >= TOGETHER_BYTES:
            await self._hash()

    async def read(self) -> str:
        """Return the digest of all that was added, in hexadecimal."""
        await self._hash()
        return self._digest.hexdigest()

    async def _hash(self) -> None:
        pieces, self._pieces, self._size = self._pieces, [], 0
        if pieces:
            await run_beside_loop(_update, self._digest, pieces)


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
        self._is_hashing = asyncio.Lock()
        self._grown = asyncio.Condition()

    async def add(self, first: int, pieces: Sequence[bytes]) -> None:
        """Take pieces of the object that begin at byte `first`."""
        for piece in pieces:
            if first + len(piece) > self._end:
                heappush(self._early, (first, piece))
            first += len(piece)
        if not self._early or self._early[0][0] > self._end:
            return
        async with self._is_hashing:
            ready = self._take_ready()
            if ready:
                await run_beside_loop(_update, self._digest, ready)
        async with self._grown:
            self._grown.notify_all()

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
        async with self._is_hashing:
            found = self._digest.hexdigest()
        if found != self._expected:
            raise mismatch("read", found, self._expected)


def _update(digest: Digest, pieces: Sequence[bytes]) -> None:
    for piece in pieces:
        digest.update(piece)
