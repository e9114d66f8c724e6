"""Writes requests; with many in flight, several at a time. Event-loop thread only."""

import asyncio

MANY, GATHER_SECONDS = 128, 0.001
"""With so many requests in flight, those of a millisecond are written together. Their responses then come together as
well, and both ends wake up once for several. It costs latency where the CPU is the bound, not latency."""


class Outbox:
    """Writes small requests; those of a millisecond together while many connections are busy."""

    def __init__(self) -> None:
        """Start empty."""
        self.busy = 0
        """Connections with a request in flight."""
        self.unwritten: dict[asyncio.Transport, bytes] = {}
        """The requests that are still to be written."""

    def write(self, transport: asyncio.Transport, message: bytes) -> None:
        """Write a request, at the latest GATHER_SECONDS from now."""
        if self.busy < MANY:
            transport.write(message)
            return
        if not self.unwritten:
            asyncio.get_running_loop().call_later(GATHER_SECONDS, self._flush)
        self.unwritten[transport] = message

    def _flush(self) -> None:
        unwritten, self.unwritten = self.unwritten, {}
        for transport, message in unwritten.items():
            if not transport.is_closing():
                transport.write(message)
