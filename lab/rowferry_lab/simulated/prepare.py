"""Prepares a simulated environment: new tables and buckets with many small images to migrate."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count as count_from
from itertools import islice
from random import Random

from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.schema import check_version
from rowferry.db.statements import statement as core_statement
from rowferry.plan import Plan, SideName
from rowferry_lab.queries import statement
from rowferry_lab.simulated.buckets import open_writers, ready_bucket, refuse_real_data
from rowferry_lab.simulated.images import draw_images
from rowferry_lab.simulated.tables import SimulatedTable, list_tables, make_role, share_rows

ROWS_AT_ONCE = 200
"""Whose images are written together."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What there is now."""

    images: dict[SideName, int]
    """Objects written to each bucket."""
    role: str
    """What the role of the migration may do now, in a sentence."""


def prepare(
    connection: Connection,
    plan: Plan,
    count: int,
    *,
    seed: int | None = None,
    clean_production: bool = False,
    role_password: str | None = None,
    on_progress: Callable[[int], object] = lambda _done: None,
) -> Prepared:
    """Drop and create the plan's tables, empty its legacy bucket, and make `count` rows with their images.

    Each row gets one image for each key column of its table, legacy or production at random. The production bucket
    is emptied only if `clean_production`. Batches of this migration that are in the queue are forgotten: their rows
    are gone. The same `seed` makes the same images again. Raises UsageError, and touches nothing, unless the plan says
    that it is simulated, and when another version of rowferry has initialised the database.
    """
    refuse_real_data(plan)
    tables = list_tables(plan)
    has_schema = bool(fetch_one(connection, core_statement("has_schema"))["has_schema"])
    if has_schema:
        check_version(connection)
    ready_bucket(plan, plan.legacy, empty=True)
    ready_bucket(plan, plan.production, empty=clean_production)
    with translated_errors(), connection.transaction():
        if has_schema:
            connection.execute(statement("forget_batches"), {"migration": plan.name})
        for table in tables:
            table.recreate(connection)
        images = _fill(connection, plan, share_rows(count, tables), seed, on_progress)
        role = make_role(connection, plan, role_password, has_schema=has_schema)
        for table in tables:
            table.analyze(connection)
    return Prepared(images, role)


def _fill(
    connection: Connection,
    plan: Plan,
    shares: list[tuple[SimulatedTable, int]],
    seed: int | None,
    on_progress: Callable[[int], object],
) -> dict[SideName, int]:
    """Write images and rows side by side, and return how many images each bucket got."""
    rng = Random(seed)  # noqa: S311 - to be repeatable, not to be secret
    numbers = count_from(1)
    counts: Counter[SideName] = Counter()
    done = 0
    with open_writers(plan) as write:
        for table, share in shares:
            drawn = zip(*(draw_images(entries, numbers, rng) for entries in table.entries), strict=False)
            with table.fill(connection) as copy:
                for first in range(0, share, ROWS_AT_ONCE):
                    rows = list(islice(drawn, min(ROWS_AT_ONCE, share - first)))
                    images = [image for row in rows for image in row]
                    write(images)
                    counts.update(image.side for image in images)
                    for row in rows:
                        done += 1
                        copy.write_row([f"avatar {done}", *(image.key for image in row)])
                    on_progress(done)
    return {"legacy": counts["legacy"], "production": counts["production"]}
