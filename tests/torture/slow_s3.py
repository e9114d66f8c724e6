"""An S3 server whose writes take up to seconds, as a proxy before a quick one; it knows what is being copied."""

import asyncio
import math
import random
from collections import deque
from urllib.parse import unquote

from support.entries.entry_table import FROM, TO
from support.s3.proxy import Proxy, Streams
from support.s3.request_log import READS, LoggedRequest, read_request
from torture.bad_s3 import read_body, read_whole_answer, send

SHORTEST_SECONDS = 0.05
LANDED = 50


class SlowS3(Proxy):
    """The running proxy; `copying` and `landed` are legacy keys, which other threads may read."""

    def __init__(self, endpoint_url: str, seed: int, longest_seconds: float) -> None:
        super().__init__(endpoint_url)
        self._chance = random.Random(seed)
        self._longest_seconds = longest_seconds
        self.copying: dict[str, None] = {}
        """Objects that were read, or that the server was told to copy, and whose copy is not acknowledged yet."""
        self.landed: deque[str] = deque(maxlen=LANDED)
        """The last ones that were acknowledged: their rows may not have moved yet."""

    async def relay_one(self, client: Streams, server: Streams) -> bool:
        """Relay one request; a write reaches the server late, and its answer comes late."""
        head = await client[0].readuntil(b"\r\n\r\n")
        seen = read_request(head)
        body = await read_body(seen.headers, client[0])
        if begins_copy(seen):
            self.copying[find_legacy_key(seen)] = None
        before, after = self._choose_delays(seen)
        await asyncio.sleep(before)
        server[1].write(head + body)
        answer = await read_whole_answer(seen, server[0])
        await asyncio.sleep(after)
        if ends_copy(seen):
            self.copying.pop(find_legacy_key(seen), None)
            self.landed.append(find_legacy_key(seen))
        return await send(client, b"".join(answer))

    def _choose_delays(self, seen: LoggedRequest) -> tuple[float, float]:
        """Return the seconds before and after the server is asked: short ones as often as long ones."""
        if seen.method in READS:
            return 0, 0
        shortest, longest = math.log(SHORTEST_SECONDS), math.log(self._longest_seconds)
        whole = math.exp(self._chance.uniform(shortest, longest))
        before = self._chance.random() * whole
        return before, whole - before


def begins_copy(seen: LoggedRequest) -> bool:
    """Return whether an object is read to be written, or is to be copied by the server itself."""
    return (seen.method == "GET" and seen.key.startswith(FROM)) or "x-amz-copy-source" in seen.headers


def ends_copy(seen: LoggedRequest) -> bool:
    """Return whether the response says that an object is written: in one piece, or by the completion of its parts."""
    return seen.writes_object or (seen.method == "POST" and "uploadId=" in seen.query)


def find_legacy_key(seen: LoggedRequest) -> str:
    """Return the legacy key of the object that a request is about."""
    source = unquote(seen.headers.get("x-amz-copy-source", ""))
    if source:
        return source.lstrip("/").partition("/")[2]
    return FROM + seen.key.removeprefix(FROM).removeprefix(TO)
