"""Brings the database's numbers, the sample and the measured pace together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rowferry.db.connection import connect, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.plan import Entries, ObjectPrefix, Plan
from rowferry_cli.estimate.bounds import UNMEASURED_WRITES, Projection, follow_queue, project
from rowferry_cli.estimate.entries import TableSample, sample_tables
from rowferry_cli.estimate.listings import LISTED_WITHIN, open_folders, sample_objects
from rowferry_cli.estimate.measure import Measured
from rowferry_cli.estimate.result import Estimate, Prices
from rowferry_cli.estimate.sample import SampledObject
from rowferry_cli.estimate.totals import SampledTable, Totals, calculate_totals
from rowferry_enqueue.checks.rows.tables import refuse_unfit_tables
from rowferry_queues.migrate.spec import MIGRATE
from rowferry_worker.migration import choose_method

MOST_KEYS = 10_000
"""Keys that are taken from the database: looked at one after the other, and copied with --copy."""
LEAST_WEIGHT = 0.1
"""All small tables together get at least this share of the sample."""
HEAVY_TAIL = 0.2
"""The part of all bytes in the largest one per cent of the objects from which the tail is spoken of."""
MANY_MISSING = 0.1

Key = tuple[str, tuple[str, str]]
"""The label of a table of the plan; a legacy key, and the production key that it becomes."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """What the queue knows of the migration."""

    is_enqueued: bool = False
    workers: int = 0
    """Live ones."""
    rate: float = 0.0
    """Entries per second in the last minute."""
    connections: int | None = None
    """Those that PostgreSQL has for all roles together."""


def read_database(
    plan: Plan, most_keys: int, on_progress: Callable[[str], None]
) -> tuple[list[TableSample], QueueState]:
    """Return a sample of each table, and the queue's state. Raises UsageError when a table cannot serve."""
    with connect("estimate", autocommit=True) as connection:
        with translated_errors():
            refuse_unfit_tables(connection, plan)
        samples = sample_tables(connection, plan, max(most_keys, MOST_KEYS), on_progress)
        samples = open_folders(plan, samples, max(most_keys, MOST_KEYS), on_progress)
        samples += sample_objects(plan, max(most_keys, MOST_KEYS), on_progress)
        with translated_errors():
            most = fetch_one(connection, statement("count_connections"))["connections"]
            if not fetch_one(connection, statement("has_schema"))["has_schema"]:
                return samples, QueueState(connections=most)
            now = fetch_one(connection, statement("read_activity"), {"migration": plan.name, "queue": MIGRATE.name})
            known = [row["name"] for row in connection.execute(statement("list_migrations"))]
    return samples, QueueState(plan.name in known, now["workers"], now["rate"], most)


def choose_keys(tables: Sequence[TableSample], most: int) -> list[Key]:
    """Return keys of all tables, mixed by their numbers of entries; of a small table rather more."""
    total = sum(table.count for table in tables) or 1.0
    placed: list[tuple[float, Key]] = []
    for table in tables:
        weight = max(table.count / total, LEAST_WEIGHT / len(tables))
        label = table.entries.label
        placed += [((place + 0.5) / weight, (label, pair)) for place, pair in enumerate(table.keys)]
    placed.sort()
    return [key for _, key in placed[: max(most, MOST_KEYS)]]


def estimate_nothing(plan: Plan, tables: Sequence[TableSample], prices: Prices, processes: int) -> Estimate:
    """Return the estimate of a migration without a legacy entry that could be sampled."""
    empty = [_take(table, ()) for table in tables]
    work = calculate_totals(empty, choose_method(plan))
    found = "no legacy entry was found"
    if any(table.unusable for table in tables):
        found = "no sampled legacy key can become a production key, so their entries will fail"
    elif not all(table.is_exact for table in tables):
        found = "no legacy entry was found in the sampled part of the tables"
    return Estimate(
        plan=plan,
        work=work,
        processes=processes,
        prices=prices,
        measurement=None,
        projection=None,
        outcomes={},
        assumptions=(found,),
        next_command="rowferry migrate --dry-run",
    )


def put_together(
    plan: Plan,
    tables: Sequence[TableSample],
    keys: Sequence[Key],
    measured: Measured,
    queue: QueueState,
    prices: Prices,
    processes: int,
) -> Estimate:
    """Return the estimate of a migration whose objects were looked at."""
    seen, sample = measured.sample.objects, measured.sample
    sampled = [
        _take(
            table,
            [seen[place] for place, (label, _) in enumerate(keys) if label == table.entries.label and place in seen],
        )
        for table in tables
    ]
    work = calculate_totals(sampled, sample.method, sample.learning, condition_is_known=measured.condition_is_known)
    projection = _project(plan, work, measured, queue, processes)
    is_multiplied = projection is not None and projection.bound.more_workers_help and processes > 1 and not queue.rate
    return Estimate(
        plan=plan,
        work=work,
        processes=processes,
        prices=prices,
        measurement=measured.measurement,
        projection=projection,
        outcomes=measured.outcomes,
        server_connections=queue.connections,
        assumptions=(
            *_describe_unlisted(tables),
            *_list_assumptions(work, measured, queue, processes if is_multiplied else 1),
        ),
        next_command=_choose_next(work, queue),
    )


def _take(table: TableSample, seen: Sequence[SampledObject]) -> SampledTable:
    return SampledTable(
        table.entries.label,
        table.count,
        table.standard_error,
        seen,
        table.unusable,
        is_listed=isinstance(table.entries, ObjectPrefix),
        in_folders=isinstance(table.entries, Entries) and table.entries.names_folders,
        objects_per_entry=table.objects_per_entry,
    )


def _describe_unlisted(tables: Sequence[TableSample]) -> list[str]:
    """Return which listings were given up: what they had not come to is in no number."""
    seconds = f"{LISTED_WITHIN.total_seconds():g} s"
    return [
        f"{table.entries.label} are the {table.count:,.0f} objects that were listed within {seconds}; there are more"
        for table in tables
        if not table.is_whole
    ]


def _project(plan: Plan, work: Totals, measured: Measured, queue: QueueState, processes: int) -> Projection | None:
    if queue.rate:
        return follow_queue(queue.rate, queue.workers)
    if measured.measurement is None:
        return None
    return project(plan, measured.measurement, work.requests_per_entry(), work.row_share, processes)


def _list_assumptions(work: Totals, measured: Measured, queue: QueueState, processes: int) -> list[str]:
    """Return what the numbers take for granted, the most doubtful first; clauses without a full stop.

    `processes`: by how many the measured pace was multiplied.
    """
    found: list[str] = []
    measurement = measured.measurement
    if measurement is not None and not measurement.copied and not queue.rate:
        what = "reads and looks" if measured.sample.method.moves_bytes else "looks at both sides"
        found.append(
            f"writes keep up with the {what} that were measured; the range allows for {UNMEASURED_WRITES:g} times "
            "as long. `rowferry estimate --copy` measures writes"
        )
    if processes > 1:
        found.append(f"{processes:,} processes do {processes:,} times the work of the one that was measured")
    if not measured.condition_is_known and work.copied_bytes.high:
        found.append(
            "the production server honours If-None-Match; if not, each object costs a HEAD more, as the range says. "
            "`rowferry check` finds out"
        )
    if work.largest_share > HEAVY_TAIL and not work.copied_bytes.is_exact:
        share = f"{100 * work.largest_share:.0f} %"
        found.append(
            f"sizes go on as they do at the sample's upper end, whose largest 1 % hold {share} of its bytes; a larger "
            "--sample narrows the ranges"
        )
    if refused := measured.sample.refusals:
        words = str(refused[0]).rstrip(".")
        found.append(f"nothing is in production yet, since some of its objects could not be looked at ({words})")
    if errors := measured.sample.errors:
        words = str(next(iter(errors.values()))).rstrip(".")
        found.append(f"{len(errors):,} sampled objects that could not be copied ({words}) are like the others")
    if work.unusable:
        found.append(f"{work.unusable:,} sampled entries fail, since their keys cannot become production keys")
    return found


def _choose_next(work: Totals, queue: QueueState) -> str:
    if queue.rate:
        return "rowferry watch"
    if work.shares["missing"].estimate > MANY_MISSING or not queue.is_enqueued:
        return "rowferry migrate --dry-run"
    return "rowferry migrate"
