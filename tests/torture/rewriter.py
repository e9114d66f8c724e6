"""An application that overwrites objects in place all the time, wherever the row says that the object is."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Lock, Thread

import psycopg

from support.entries.entry_table import FROM
from torture.slow_s3 import SlowS3
from torture.world import World, key_of

THREADS = 4
LONGEST_PAUSE = timedelta(seconds=1)
ENDS_WITHIN = timedelta(seconds=60)
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
        self._ended = Event()
        self._numbers = {key_of(number): number for number in range(1, world.entries + 1)}
        self._turns = {number: Lock() for number in self._numbers.values()}
        listing = world.migration.legacy.listing()
        self._sizes = {number: int(str(listing[key][1])) for key, number in self._numbers.items()}
        self._fault: Exception | None = None
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
        self._ended.clear()
        threads = [Thread(target=self._run, args=[self._chance.random()], daemon=True) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join(ENDS_WITHIN.total_seconds())
        if self._fault is not None:
            raise self._fault

    def _run(self, seed: float) -> None:
        chance = random.Random(seed)
        try:
            with psycopg.connect(self._world.migration.dsn, autocommit=True, application_name="rewriter") as connection:
                while not self._ended.wait(chance.uniform(0, LONGEST_PAUSE.total_seconds())):
                    self._rewrite(connection, chance)
        except Exception as fault:  # noqa: BLE001 - it is raised again where the threads are joined
            self._fault = fault

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
