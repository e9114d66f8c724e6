"""How many bytes of bodies the process holds: copies wait for their share, in the order in which they came."""

import asyncio
from collections import deque
from types import TracebackType
from typing import Self

from rowferry_worker.machine import BODIES_BYTES

SMOOTHING_UP, SMOOTHING_DOWN = 0.5, 0.1
"""Larger bodies are believed sooner than smaller ones: memory that runs short does not wait."""
EXPECTED_BYTES = 512 * 1024
"""What a body is expected to take before the headers of any have come: what a pipe holds."""
TLS_BYTES, TLS_BUFFER_BYTES = 32 * 1024, 256 * 1024
"""What a TLS connection counts for by itself, and how much of a body it keeps room for: uvloop reads and OpenSSL holds
as much at once, each in a buffer that does not shrink before the connection is closed."""


class BodyBudget:
    """A semaphore in bytes, first come, first served: a large body does not starve. Event-loop thread only.

    A share is taken before the first request, when the size is not known yet, and never waited for by who has one
    already: two copies cannot wait for each other. Until the size is known, it is that of the last bodies on average,
    and before the first, EXPECTED_BYTES: how large objects are is learned from a few of them.
    """

    def __init__(self, total_bytes: int = BODIES_BYTES, *, expected_bytes: int = EXPECTED_BYTES) -> None:
        """`total_bytes`: what all bodies together may hold; a single one may hold more, alone.

        `expected_bytes`: what one is expected to hold before any size is known.
        """
        self.total_bytes = total_bytes
        self.held_bytes = 0
        self._expected = float(expected_bytes)
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()

    async def hold(self, size_bytes: int | None = None, *, tls_connections: int = 0) -> "Hold":
        """Wait for a share of `size_bytes` and return it; None: what is to come will tell by `Hold.resize`.

        `tls_connections`: over so many of them the body passes, whose buffers count as well.
        """
        wanted = add_tls(int(self._expected) if size_bytes is None else size_bytes, tls_connections)
        await self.take(wanted)
        return Hold(self, wanted, tls_connections)

    async def take(self, size_bytes: int) -> None:
        """Wait until there is room for so much, and take it."""
        if not self._waiting and self.has_room(size_bytes):
            self.held_bytes += size_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, size_bytes))
        try:
            await turn
        except asyncio.CancelledError:
            is_granted = turn.done() and not turn.cancelled()
            turn.cancel()
            self.change(-size_bytes if is_granted else 0)  # who was behind it in the line may go on
            raise

    def expect(self, size_bytes: int) -> None:
        """Note what a body has turned out to hold."""
        change = size_bytes - self._expected
        self._expected += (SMOOTHING_UP if change > 0 else SMOOTHING_DOWN) * change

    def change(self, by_bytes: int) -> None:
        """Take more, or give some back to those who wait."""
        self.held_bytes += by_bytes
        while self._waiting:
            turn, wanted = self._waiting[0]
            if not turn.done():
                if not self.has_room(wanted):
                    return
                self.held_bytes += wanted
                turn.set_result(None)
            self._waiting.popleft()

    def has_room(self, size_bytes: int, instead_of: int = 0) -> bool:
        """Return whether so much may be held now, in the place of what is held already; one alone always may."""
        others = self.held_bytes - instead_of
        return not others or others + size_bytes <= self.total_bytes


class Hold:
    """One copy's share: a context that gives it back."""

    __slots__ = ("_budget", "_tls_connections", "size_bytes")

    def __init__(self, budget: BodyBudget, size_bytes: int, tls_connections: int) -> None:
        """`size_bytes` are held already, with what the connections count for."""
        self._budget = budget
        self._tls_connections = tls_connections
        self.size_bytes = size_bytes

    def fits(self, size_bytes: int) -> bool:
        """Return whether there is room for this much in the place of what is held."""
        return self._budget.has_room(add_tls(size_bytes, self._tls_connections), instead_of=self.size_bytes)

    async def wait_for(self, size_bytes: int) -> None:
        """Give it back, and wait in the line for this much: nothing of it may be on its way."""
        self.release()
        self._budget.expect(size_bytes)
        wanted = add_tls(size_bytes, self._tls_connections)
        await self._budget.take(wanted)
        self.size_bytes = wanted

    def resize(self, size_bytes: int) -> None:
        """Hold this much instead, without waiting: the bytes are on their way."""
        self._budget.expect(size_bytes)
        wanted = add_tls(size_bytes, self._tls_connections)
        self._budget.change(wanted - self.size_bytes)
        self.size_bytes = wanted

    def release(self) -> None:
        """Give it back; a second time does nothing."""
        held, self.size_bytes = self.size_bytes, 0
        if held:
            self._budget.change(-held)

    def __enter__(self) -> Self:
        """Hold it."""
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Give it back."""
        self.release()


def add_tls(size_bytes: int, connections: int) -> int:
    """Return what a body counts for that passes over so many TLS connections."""
    return size_bytes + connections * (TLS_BYTES + 2 * min(size_bytes, TLS_BUFFER_BYTES))
