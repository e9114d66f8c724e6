"""Reads as either version of the application would, all the time: the newest bytes, and nothing missing."""

import random
from collections import Counter
from contextlib import closing
from threading import Event, Thread
from typing import Literal, LiteralString, Self

import psycopg

from support.entries.entry_table import FROM
from torture.object_reader import ObjectReader
from torture.switching.history import Entry, Histories, Table, judge
from torture.world import World

Version = Literal["old", "new"]
ROWS: dict[Table, LiteralString] = {
    "pictures": "select path from public.pictures where id = %s",
    "files": "select path from public.files where id = %s",
}
LOOKS = 3
"""So often an object is looked at again before it is a violation: what is done meanwhile is none."""


class VersionAuditor:
    """Two threads that read one object after the other; `versions` are those that run now, which others may set."""

    def __init__(self, world: World, histories: Histories, seed: int) -> None:
        self._world, self._histories, self._seed = world, histories, seed
        self._ended = Event()
        self.versions: tuple[Version, ...] = ("old",)
        self.reads: Counter[Version] = Counter()
        self._threads = [Thread(target=self._run, args=[number], daemon=True) for number in range(2)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        chance = random.Random(self._seed + number)
        try:
            with (
                psycopg.connect(self._world.migration.dsn, autocommit=True) as connection,
                closing(ObjectReader(self._world.s3)) as reader,
            ):
                while not self._ended.wait(0.01):
                    version, living = chance.choice(self.versions), self._histories.living()
                    if living:
                        self._audit(connection, reader, chance.choice(living), version)
        except Exception as error:  # noqa: BLE001 - else it would be silent for ever
            self._world.auditor.report(f"the auditor of the versions failed: {error!r}")

    def _audit(self, connection: psycopg.Connection, reader: ObjectReader, entry: Entry, version: Version) -> None:
        wrong = None
        for _ in range(LOOKS):
            wrong = self.find_fault(connection, reader, entry, version)
            self.reads[version] += 1
            if wrong is None:
                return
        self._world.auditor.report(f"read by the {version} version, {entry} {wrong}")

    def find_fault(
        self,
        connection: psycopg.Connection,
        reader: ObjectReader,
        entry: Entry,
        version: Version,
        *,
        is_over: bool = False,
    ) -> str | None:
        """Return what is wrong with an object as a version of the application reads it; None: nothing."""
        before = self._histories.of(entry)
        row = connection.execute(ROWS[entry[0]], [entry[1]]).fetchone()
        if before is None or row is None:
            return None if before is None or before.is_going or self._is_going(entry) else "has lost its row"
        body, from_legacy = self._read(reader, entry[0], str(row[0]), version, falls_back=not is_over)
        after = self._histories.of(entry)
        again = connection.execute(ROWS[entry[0]], [entry[1]]).fetchone()
        if after is None or after.is_going or again != row:
            return None
        return judge(before, after, body, from_legacy=from_legacy, is_over=is_over)

    def _is_going(self, entry: Entry) -> bool:
        known = self._histories.of(entry)
        return known is None or known.is_going

    def _read(
        self, reader: ObjectReader, table: Table, key: str, version: Version, *, falls_back: bool
    ) -> tuple[bytes | None, bool]:
        """Return the bytes that a version gets, and whether they came from the legacy bucket."""
        if table == "pictures":
            order = (key.startswith(FROM),)
        else:
            order = (version == "old", version == "new") if falls_back else (version == "old",)
        for is_legacy in order:
            side = self._world.migration.legacy if is_legacy else self._world.migration.production
            if (found := reader.read(side.bucket, key)) is not None:
                return found.body, is_legacy
        return None, order[-1]
