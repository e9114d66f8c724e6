"""A migration for the benches: a table of legacy rows, its batches, and workers that are measured."""

import sys
from collections.abc import Callable, Mapping

from bench.environment import Usage, run_measured
from rowferry.db.connection import connect
from rowferry.plan import Entries, LegacySide, MigrationSettings, Plan, ProductionSide
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_queues.migrate.spec import MIGRATE

WORKER = (sys.executable, "-m", "rowferry_cli", "worker", "--processes=1", "--until-empty", "--log-format=json")
ROWS = """
drop table if exists pictures;
create table pictures (id bigint generated always as identity primary key, path text not null);
insert into pictures (path) select 'image/' || lpad(i::text, 9, '0') || '.png' from generate_series(1, %(rows)s) as i;
analyze pictures;
truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure;
"""
SPAN = """
select
    sum(migrated)::int as migrated, sum(kept)::int as kept, sum(entry_count)::int as entries,
    extract(epoch from max(finished_at) - min(started_at))::float as seconds
from rowferry.batch_queue
where status = 'DONE'
"""
LEFT = "select count(*)::int as legacy from pictures where path like 'image/%%'"


def make_rows(rows: int) -> None:
    """Make the table anew with this many legacy rows, and empty the queue."""
    with connect("bench", autocommit=True) as connection:
        for statement in filter(str.strip, ROWS.split(";")):
            connection.execute(statement.encode(), {"rows": rows} if "%(" in statement else None)


def enqueue_rows(
    legacy_url: str,
    production_url: str,
    batch_size: int,
    *,
    production_bucket: str = "production",
    immutable: bool = False,
) -> None:
    """Put the legacy rows in the queue, from the bucket `legacy` to the bucket `production` or as it is named.

    `immutable`: the plan says that no legacy object changes, so that none is looked at again.
    """
    entries = Entries("pictures", "id", "path", "image/", "avatar/")
    plan = make_plan(entries, legacy_url, production_url, production_bucket, immutable=immutable)
    with connect("bench", autocommit=True) as connection:
        enqueue(connection, plan, EnqueueRequest(MIGRATE, batch_size))


def make_plan(
    entries: Entries,
    legacy_url: str,
    production_url: str,
    production_bucket: str = "production",
    *,
    immutable: bool = False,
) -> Plan:
    """Return the plan that moves entries from the bucket `legacy` to the bucket `production` or as it is named."""
    sides = LegacySide("legacy", legacy_url, immutable=immutable), ProductionSide(production_bucket, production_url)
    return Plan(MigrationSettings("bench"), *sides, (entries,))


def fix_pace(parallel: int) -> tuple[str, ...]:
    """Return the options of a worker that has so many objects in flight whatever happens."""
    return (f"--parallel={parallel}", f"--min-parallel={parallel}")


def run_worker(
    *arguments: str, environment: Mapping[str, str] | None = None, on_start: Callable[[int], None] | None = None
) -> Usage:
    """Run `rowferry worker` until the queue is empty; `on_start` is told its pid."""
    return run_measured([*WORKER, *arguments], environment, on_start)


def read_span(rows: int) -> float:
    """Return the seconds from the first claim to the last verdict; AssertionError unless all rows are production."""
    check_rows()
    return read_seconds(rows)


def read_seconds(rows: int) -> float:
    """Return the same; AssertionError unless all entries were settled."""
    with connect("bench", autocommit=True) as connection:
        span = connection.execute(SPAN.encode()).fetchone()
    assert span is not None
    assert span["migrated"] + span["kept"] == rows, f"{span} where {rows} entries were expected"
    return float(span["seconds"])


def check_rows() -> None:
    """Raise AssertionError where a row is still legacy."""
    with connect("bench", autocommit=True) as connection:
        left = connection.execute(LEFT.encode()).fetchone()
    assert left is not None
    assert left["legacy"] == 0, f"{left['legacy']} rows are still legacy"
