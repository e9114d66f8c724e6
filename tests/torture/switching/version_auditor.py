"""Reads as either version of the application would, all the time: the newest bytes, and nothing missing."""

import random
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, closing
from datetime import timedelta
from functools import partial
from threading import Event
from typing import Literal, LiteralString

import psycopg

from support.entries.entry_table import FROM, TO
from support.processes.processes import meanwhile
from torture.final_checks import read_named
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
        self.versions: tuple[Version, ...] = ("old",)
        self.reads: Counter[Version] = Counter()

    def watching(self) -> AbstractContextManager[None]:
        """Read until the block ends."""
        return meanwhile(*(partial(self._run, number) for number in range(2)))

    def _run(self, number: int, ended: Event) -> None:
        chance = random.Random(self._seed + number)
        with (
            psycopg.connect(self._world.migration.dsn, autocommit=True) as connection,
            closing(ObjectReader(self._world.s3)) as reader,
        ):
            while not ended.wait(0.01):
                version, living = chance.choice(self.versions), self._histories.living()
                if living:
                    self._audit(connection, reader, chance.choice(living), version)

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


LONGEST_COPY = timedelta(seconds=30)
"""A copy that is on its way when its object is deleted arrives within this time, on a busy machine."""
NAMED, LEFT = "old objects named", "copies on their way at a deletion"
LEGACY = "select id from public.pictures where path like 'image/%%'"


def look_at_the_end(
    world: World, auditor: VersionAuditor, histories: Histories, orphans: Collection[str], counts: Counter[str]
) -> Iterator[str]:
    """Yield what is wrong now that `cutover --finish` has ended; `orphans` are keys that no row has ever held."""
    named = read_named(world)
    with psycopg.connect(world.migration.dsn, autocommit=True) as connection, closing(ObjectReader(world.s3)) as reader:
        for entry in histories.living():
            fault = auditor.find_fault(connection, reader, entry, "new", is_over=True)
            if fault is not None and entry in named:
                counts[NAMED] += 1
            elif fault is not None:
                yield f"{entry} {fault}, and `rowferry errors` does not name it"
    for row in world.query(LEGACY):
        if ("pictures", row["id"]) not in named:
            yield f"('pictures', {row['id']}) is still legacy, and `rowferry errors` does not name it"
    yield from look_for_the_dead(world, histories, orphans, counts)


def look_for_the_dead(
    world: World, histories: Histories, orphans: Collection[str], counts: Counter[str]
) -> Iterator[str]:
    """Yield what was deleted, or rolled back, and stands in production all the same."""
    written_at = {
        key: last.timestamp()  # pyright: ignore[reportAttributeAccessIssue]
        for key, (_, _, last) in world.migration.production.listing().items()
    }
    for entry, known in histories.deleted().items():
        for key in set(known.keys) & written_at.keys():
            if written_at[key] - (known.deleted_at or 0) > LONGEST_COPY.total_seconds():
                yield f"{entry} was deleted, and {key} was written again later"
            else:
                counts[LEFT] += 1
    for key in orphans:
        if {key, key.replace(FROM, TO, 1)} & written_at.keys():
            yield f"{key} was never a row's object, and was copied"
