"""The end of a switch-over: the newest bytes in production, nothing deleted there again, and what differs is named."""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from datetime import timedelta

import psycopg

from support.entries.entry_table import FROM, TO
from torture.final_checks import read_named
from torture.object_reader import ObjectReader
from torture.switching.history import Histories
from torture.switching.version_auditor import VersionAuditor
from torture.world import World

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
