"""An S3 server that misbehaves, as a proxy before a good one: what is true is in the server behind it."""

import asyncio
import random
import re
import secrets
import socket
import struct
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from itertools import islice

from support.s3.outages import Outage
from support.s3.proxy import Proxy, Streams
from support.s3.request_log import READS, LoggedRequest, read_body, read_request, read_whole_answer, send

RATES: Mapping[str, float] = {
    "throttled": 0.20,
    "answered 500": 0.02,
    "200 with an error": 0.02,
    "reset": 0.01,
    "never answered": 0.005,
    "truncated": 0.01,
    "wrong ETag": 0.01,
}
"""How often each fault is met, as a share of the requests that it can befall; once for certain, as soon as it may."""
ETAG_HEADER = re.compile(rb'(?i)(\r\netag: *"?)[0-9a-f]{32}')
ETAG_ELEMENT = re.compile(rb"(<ETag>(?:&quot;|&#34;|\")?)[0-9a-f]{32}")
XML = b'<?xml version="1.0" encoding="UTF-8"?>\n'
HIDING = re.compile("x-amz-copy-source|uploadId=")
"""What names the operations that may answer 200 and fail all the same, in the headers or the query of a write."""


class BadS3(Proxy):
    """The running proxy; `counts` says what it did to whom, `endpoint_url` where it listens."""

    def __init__(
        self, endpoint_url: str, seed: int, rates: Mapping[str, float] = RATES, *, host: str = "127.0.0.1"
    ) -> None:
        super().__init__(endpoint_url, host=host)
        self._chance = random.Random(seed)
        self.rates = dict(rates)
        """May be emptied while it runs: from then on it behaves."""
        self.counts: Counter[str] = Counter()
        self._owed = set(rates)
        """Faults that were not met yet: chance alone promises none of them."""
        self.requests = 0
        self.delay = timedelta()
        """How much later each request reaches the server."""
        self.outage: Outage | None = None
        """Which requests reach something else, as long as it is set, and what that answers."""

    def _choose(self, seen: LoggedRequest) -> str | None:
        """Return the fault that befalls a request, if one does."""
        self.requests += 1
        dice, most = self._chance.random(), 0.0
        drawn = (fault for fault, rate in self.rates.items() if dice < (most := most + rate))
        overdue = (fault for fault, rate in self.rates.items() if fault in self._owed and self.requests > 1 / rate)
        for fault in (*islice(drawn, 1), *overdue):
            if fault != "200 with an error" or is_hiding(seen):
                self._owed.discard(fault)
                return fault
        return None

    async def relay_one(self, client: Streams, server: Streams) -> bool:
        """Relay one request and its answer, or misbehave. Return whether the connection may be used again."""
        head = await client[0].readuntil(b"\r\n\r\n")
        seen = read_request(head)
        body = await read_body(seen.headers, client[0])
        await asyncio.sleep(self.delay.total_seconds())
        if self.outage is not None and self.outage.matches(seen):
            self.counts["answered by something else"] += 1
            return await send(client, self.outage.answer) and bool(self.outage.answer)
        fault, late = self._choose(seen), self._chance.random() < 0.5
        if fault is None or late or fault in {"truncated", "wrong ETag"}:
            server[1].write(head + body)
            head, body = await read_whole_answer(seen, server[0])
        if fault is None:
            return await send(client, head + body)
        # Late: the server has done what it was asked for, and only the answer is bad.
        told = await self._misbehave(fault, seen, client, head, body)
        if told:
            self.counts[fault] += 1
        elif not self.counts[fault]:
            self._owed.add(fault)
        return fault in {"throttled", "answered 500", "200 with an error", "wrong ETag"} or not told

    async def _misbehave(self, fault: str, seen: LoggedRequest, client: Streams, head: bytes, body: bytes) -> bool:
        """Respond badly; return whether that was possible, else the good answer was sent."""
        match fault:
            case "throttled":
                return await send(client, error_answer(seen, 503, "SlowDown"))
            case "answered 500":
                return await send(client, error_answer(seen, 500, "InternalError"))
            case "200 with an error":
                # Some end before the error is told: a body that its connection's end delimits can be cut anywhere.
                return await send(client, error_answer(seen, 200, "InternalError", cut=self._chance.random() < 0.5))
            case "reset":
                client[1].get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                client[1].transport.abort()
            case "never answered":
                await client[0].read()  # until the client leaves
            case "truncated":
                if not body or seen.method == "HEAD":
                    return not await send(client, head + body)
                await send(client, head + body[: len(body) // 2])
            case _:
                wrong = secrets.token_hex(16).encode()
                bad = (
                    ETAG_HEADER.sub(rb"\g<1>" + wrong, head, count=1),
                    ETAG_ELEMENT.sub(rb"\g<1>" + wrong, body, count=1),
                )
                sent = await send(client, b"".join(bad))
                return sent and bad != (head, body)
        return True


def is_hiding(seen: LoggedRequest) -> bool:
    """Return whether a request may be answered 200 and fail all the same."""
    return seen.method not in READS and bool(HIDING.search(f"{seen.query} {' '.join(seen.headers)}"))


def error_answer(seen: LoggedRequest, status: int, code: str, *, cut: bool = False) -> bytes:
    """Return an answer with S3's error in its body; `cut`: the body ends before the error."""
    body = XML + (b"" if cut else f"<Error><Code>{code}</Code><Message>as told</Message></Error>".encode())
    length = 0 if seen.method == "HEAD" else len(body)
    head = f"HTTP/1.1 {status} As Told\r\nContent-Length: {length}\r\nContent-Type: application/xml\r\n\r\n"
    return head.encode() + body[:length]
