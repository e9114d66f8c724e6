"""A migration for the benches: a table of legacy rows, and its batches."""

from bench.environment import execute
from rowferry.db.connection import connect
from rowferry.plan import Entries, LegacySide, MigrationSettings, Plan, ProductionSide
from rowferry.reports.facts import record_facts
from rowferry_cli.work.enqueue import command as enqueue_command
from rowferry_enqueue.check import check_plan
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_queues.migrate.spec import MIGRATE

BATCH_SIZE = next(int(str(option.default)) for option in enqueue_command.params if option.name == "batch_size")
"""What `rowferry enqueue` makes unless told otherwise."""
ROWS = """
drop table if exists public.pictures;
create table public.pictures (id bigint generated always as identity primary key, path text not null);
insert into public.pictures (path)
select 'image/' || lpad(i::text, 9, '0') || '.png' from generate_series(1, {rows}) as i;
analyze public.pictures;
"""
EMPTY = "truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure"
COUNTS = "select count(*) filter (where path like 'avatar/%'), count(*) from public.pictures"


def make_rows(rows: int) -> None:
    """Make the table anew with this many legacy rows, and empty the queue."""
    make_table(rows)
    execute(EMPTY)


def make_table(rows: int) -> None:
    """Make the table anew with this many legacy rows."""
    for statement in filter(str.strip, ROWS.format(rows=rows).split(";")):
        execute(statement)


def enqueue_rows(legacy_url: str, production_url: str, batch_size: int, *, immutable: bool = False) -> None:
    """Check the plan, and put the legacy rows in the queue, from the bucket `legacy` to the bucket `production`.

    The check tells workers whether the server copies tags; else they ask for those of each object. `immutable`: the
    plan says that no legacy object changes, so that none is looked at again.
    """
    sides = LegacySide("legacy", legacy_url, immutable=immutable), ProductionSide("production", production_url)
    plan = Plan(MigrationSettings("bench"), *sides, (Entries("pictures", "id", "path", "image/", "avatar/"),))
    with connect("bench", autocommit=True) as connection:
        facts: dict[str, bool | str] = {}
        list(check_plan(connection, plan, facts=facts))  # the stub keeps no bytes, which is a problem to it
        record_facts(connection, plan.name, facts)
        enqueue(connection, plan, EnqueueRequest(MIGRATE, batch_size))


def count_rows() -> tuple[int, int]:
    """Return how many rows are production, and how many there are."""
    ((done, rows),) = execute(COUNTS)
    return int(done), int(rows)


def check_rows() -> None:
    """Raise AssertionError where a row is still legacy."""
    done, rows = count_rows()
    assert done == rows, f"{rows - done} rows are still legacy"
