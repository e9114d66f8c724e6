"""An application that overwrites objects in place, and a slow S3 server before it that tells what is being copied."""

import asyncio
import math
import random
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from threading import Event, Lock
from urllib.parse import unquote

import psycopg

from support.entries.entry_table import FROM, TO
from support.processes.processes import meanwhile
from support.s3.proxy import Proxy, Streams
from support.s3.request_log import READS, LoggedRequest, read_body, read_request, read_whole_answer, send
from torture.world import World, key_of

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


THREADS = 4
LONGEST_PAUSE = timedelta(seconds=1)
KEY = "select path from public.avatars where id = %s"
DURING, AFTER = "objects rewritten during their copy", "objects rewritten after their copy"


@dataclass(frozen=True, slots=True)
class Version:
    """The newest bytes of an object of which the application knows that they are stored."""

    body: bytes
    is_legacy: bool
    """Where they were written."""
    acknowledged_at: float
    """Unix time, in seconds."""


class Rewriter:
    """Threads that overwrite one object after the other; two of them never write to the same one at once."""

    def __init__(self, world: World, slow: SlowS3, seed: int) -> None:
        """The objects are those that the world has now; `slow` tells which of them are being copied."""
        self._world, self.slow = world, slow
        self._chance = random.Random(seed)
        self._numbers = {key_of(number): number for number in range(1, world.entries + 1)}
        self._turns = {number: Lock() for number in self._numbers.values()}
        listing = world.migration.legacy.listing()
        self._sizes = {number: int(str(listing[key][1])) for key, number in self._numbers.items()}
        self.newest: dict[int, Version] = {}
        """By number, of those objects that were overwritten."""
        self.done: Counter[str] = Counter()

    @property
    def written(self) -> set[str]:
        """Return the legacy keys of all objects that were overwritten."""
        return {key_of(number) for number in self.newest}

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Overwrite until the block ends; raises what a thread has died of."""
        with meanwhile(*(partial(self._run, self._chance.random()) for _ in range(THREADS))):
            yield

    def _run(self, seed: float, ended: Event) -> None:
        chance = random.Random(seed)
        with psycopg.connect(self._world.migration.dsn, autocommit=True, application_name="rewriter") as connection:
            while not ended.wait(chance.uniform(0, LONGEST_PAUSE.total_seconds())):
                self._rewrite(connection, chance)

    def _rewrite(self, connection: psycopg.Connection, chance: random.Random) -> None:
        """Write to where the row says that the object is; the row may move meanwhile."""
        key = self._choose(chance)
        number = self._numbers[key]
        with self._turns[number]:
            body = self._make_body(number, chance)
            (standing,) = connection.execute(KEY, [number]).fetchone() or (key,)
            is_legacy = standing.startswith(FROM)
            side = self._world.migration.legacy if is_legacy else self._world.migration.production
            self._world.oracle.allow(number, body)
            side.put(standing, body)
            self.newest[number] = Version(body, is_legacy, time.time())
        self.done[f"objects rewritten in {'legacy' if is_legacy else 'production'}"] += 1
        self.done[DURING] += is_legacy and key in self.slow.copying
        self.done[AFTER] += is_legacy and key in self.slow.landed

    def _choose(self, chance: random.Random) -> str:
        """Return the legacy key of an object: one that is being copied, or was a moment ago, or any."""
        among = chance.choice((list(self.slow.copying), list(self.slow.landed), [], []))
        known = [key for key in among if key in self._numbers]
        return chance.choice(known or list(self._numbers))

    def _make_body(self, number: int, chance: random.Random) -> bytes:
        """Return other bytes, half of the time as many as there were at first."""
        size = self._sizes[number]
        return chance.randbytes(max(8, size) if chance.random() < 0.5 else max(8, size + chance.randrange(-200, 200)))
