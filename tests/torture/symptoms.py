"""What spoilt connections feel like, told by a connection through the same proxy that workers go through."""

import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from struct import pack

PATIENCE_SECONDS = 20
HELLO: Mapping[str, bytes] = {
    "s3": b"GET / HTTP/1.1\r\nHost: torture\r\nConnection: close\r\n\r\n",
    "postgresql": pack("!ihh", 8, 9, 9),  # It has no such version of its protocol, and says so at some length.
}
"""What each server refuses in a few hundred bytes, for every client."""
LATENCY = {"latency": 200, "jitter": 150}
"""In milliseconds, each way."""
LEAST_SECONDS = 2 * (LATENCY["latency"] - LATENCY["jitter"]) / 1000
CLOSE_DELAY = {"delay": 2000}


@dataclass(slots=True)
class Felt:
    """One connection: seconds from the hello to the answer and to the end, infinite where neither came."""

    answered_after: float = float("inf")
    closed_after: float = float("inf")
    pieces: int = 0
    """In so many the answer arrived."""


def feel(server: str, address: str) -> Felt:
    """Say hello through a proxy that listens at `host:port`, and listen until the connection is closed."""
    host, port = address.rsplit(":", 1)
    felt = Felt()
    with suppress(OSError), closing(socket.create_connection((host, int(port)), PATIENCE_SECONDS)) as connection:
        began = time.monotonic()
        connection.sendall(HELLO[server])
        while connection.recv(4096):
            felt.answered_after = min(felt.answered_after, time.monotonic() - began)
            felt.pieces += 1
        felt.closed_after = time.monotonic() - began
    return felt


SYMPTOMS: Mapping[str, Callable[[Felt], bool]] = {
    "slow connections": lambda felt: felt.pieces > 0 and felt.answered_after >= LEAST_SECONDS,
    "slow closes": lambda felt: felt.pieces > 0 and felt.closed_after >= CLOSE_DELAY["delay"] / 1000,
    "streams in small pieces": lambda felt: felt.pieces > 1,
}
"""Of the faults that let all bytes through in the end. What others swallow, the proxy counts."""
