"""Prepares a simulated environment: new tables and buckets with many small images to migrate."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count as count_from
from random import Random, SystemRandom

from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.schema import check_version
from rowferry.db.statements import statement as core_statement
from rowferry.errors import ObjectError, UsageError
from rowferry.plan import Plan, SideName
from rowferry_lab.queries import statement
from rowferry_lab.simulated.buckets import Uploads, ready_bucket, refuse_real_data
from rowferry_lab.simulated.images import draw_images
from rowferry_lab.simulated.tables import MigrationRole, SimulatedTable, list_tables, make_role, share_rows

OnImage = Callable[[int, int], None]
"""Told how many of how many rows have been made."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What there is now."""

    rows: int
    images: dict[SideName, int]
    """Objects written to each bucket."""
    role: MigrationRole
    seed: int
    """Makes the same images again."""


def prepare(
    connection: Connection,
    plan: Plan,
    count: int,
    *,
    seed: int | None = None,
    clean_production: bool = False,
    role_password: str | None = None,
    on_progress: OnImage = lambda _done, _total: None,
) -> Prepared:
    """Drop and create the plan's tables, empty its legacy bucket, and make `count` rows with their images.

    Each row gets one image for each key column of its table, legacy or production at random. The production bucket
    is emptied only if `clean_production`. Batches of this migration that are in the queue are forgotten: their rows
    are gone. Raises UsageError, and touches nothing, unless the plan says that it is simulated, and when another
    version of rowferry has initialised the database.
    """
    refuse_real_data(plan)
    tables = list_tables(plan)
    seed = SystemRandom().getrandbits(32) if seed is None else seed
    has_schema = bool(fetch_one(connection, core_statement("has_schema"))["has_schema"])
    if has_schema:
        check_version(connection)
    _ready_buckets(plan, clean_production=clean_production)
    with translated_errors(), connection.transaction():
        if has_schema:
            connection.execute(statement("forget_batches"), {"migration": plan.name})
        for table in tables:
            table.recreate(connection)
        images = _fill(connection, plan, share_rows(count, tables), seed, on_progress)
        role = make_role(connection, plan, role_password)
        for table in tables:
            table.analyze(connection)
    return Prepared(count, images, role, seed)


def _ready_buckets(plan: Plan, *, clean_production: bool) -> None:
    for side, empty in ((plan.legacy, True), (plan.production, clean_production)):
        try:
            ready_bucket(plan, side, empty=empty)
        except ObjectError as error:
            raise UsageError(f"The {side.name} bucket {side.bucket} cannot be prepared: {error}.") from error


def _fill(
    connection: Connection, plan: Plan, shares: list[tuple[SimulatedTable, int]], seed: int, on_progress: OnImage
) -> dict[SideName, int]:
    """Write images and rows side by side, and return how many images each bucket got."""
    rng = Random(seed)  # noqa: S311 - to be repeatable, not to be secret
    numbers = count_from(1)
    counts: Counter[SideName] = Counter()
    total = sum(share for _, share in shares)
    done = 0
    with Uploads(plan) as uploads:
        for table, share in shares:
            columns = [draw_images(entries, numbers, rng) for entries in table.entries]
            with table.fill(connection) as copy:
                for _ in range(share):
                    images = [next(column) for column in columns]
                    for image in images:
                        uploads.send(image)
                        counts[image.side] += 1
                    done += 1
                    copy.write_row([f"avatar {done}", *(image.key for image in images)])
                    on_progress(done, total)
    return {"legacy": counts["legacy"], "production": counts["production"]}
