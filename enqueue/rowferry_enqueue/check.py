"""Compares a plan with the real database and the real buckets before anything is migrated; reports every problem."""

from collections.abc import Iterable, Iterator, Sequence

from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.entries import EntryQueries, to_entries
from rowferry.db.schema import check_version
from rowferry.db.statements import statement
from rowferry.errors import DatabaseUnavailable, RowferryError, UsageError
from rowferry.plan import Entries, OnConflict, Plan
from rowferry.s3.listing import OnProgress, ignore_progress
from rowferry_enqueue.check_buckets import check_buckets
from rowferry_enqueue.check_collisions import check_collisions
from rowferry_enqueue.check_keys import check_keys, quote_key, run_check
from rowferry_enqueue.check_objects import Sample
from rowferry_enqueue.check_reverting import check_reverting
from rowferry_enqueue.check_tables import CheckedTable, check_rights_and_rows, check_table, check_together
from rowferry_enqueue.enqueue import find_migration
from rowferry_enqueue.finding import Finding, note, problem

__all__ = ["Finding", "check_plan", "check_rows"]

SAMPLED = 100
"""Entries whose objects are looked at, of all tables together."""
MIN_SAMPLED = 10
"""Of each table, however many tables there are."""
EXAMPLES = 3
"""Keys shown for each table."""


def check_plan(
    connection: Connection,
    plan: Plan,
    *,
    on_conflict: OnConflict | None = None,
    allow_empty: bool = False,
    may_write: bool = True,
    on_progress: OnProgress = ignore_progress,
) -> list[Finding]:
    """Return the findings about tables, keys and buckets, in this order.

    Writes probe objects to the production bucket and removes them, unless `may_write` is false; writes nothing else.
    `on_conflict`: what the migration will do where a different production object exists; only with "fail", or
    None, is that a problem. `allow_empty`: it is no problem that there is no legacy entry.
    Raises DatabaseUnavailable when the connection is lost.
    """
    findings = list(check_rows(connection, plan, on_conflict, on_progress))
    samples = sample_entries(connection, plan, on_progress)
    findings += show_examples(samples)
    findings += check_emptiness(connection, plan, samples, allow_empty=allow_empty)
    is_new = find_migration(connection, plan.name) is None
    may_be_empty = allow_empty or not is_new
    return [
        *findings,
        *check_buckets(plan, on_progress, samples, may_write=may_write, is_new=is_new, may_be_empty=may_be_empty),
    ]


def check_rows(
    connection: Connection, plan: Plan, on_conflict: OnConflict | None, on_progress: OnProgress
) -> Iterator[Finding]:
    """Yield what the database shows; asks the buckets only about collisions with production entries."""
    yield from _check_server(connection)
    yield from _check_replica_lag(connection, plan)
    usable: list[EntryQueries] = []
    checked: list[CheckedTable] = []
    for entries in plan.entries:
        on_progress(f"looking at {entries.label}")
        table = check_table(connection, entries)
        checked.append(table)
        usable.extend(table.usable)
        yield from table.findings
        yield from check_rights_and_rows(connection, table)
    yield from check_together(checked)
    yield from check_keys(connection, usable, on_progress)
    yield from run_check(lambda: list(check_reverting(connection, usable)))
    yield from check_collisions(connection, plan, usable, on_conflict or "fail", on_progress)


def _check_server(connection: Connection) -> Iterator[Finding]:
    if fetch_one(connection, statement("is_read_only"))["is_read_only"]:
        yield problem("this database is read-only", "see that DATABASE_URL or PG* does not lead to a standby")
    if not fetch_one(connection, statement("has_schema"))["has_schema"]:
        yield note("this database has no schema rowferry yet: `rowferry init` makes it, or `rowferry migrate`")
        return
    try:
        with connection.transaction():
            check_version(connection)
    except UsageError as error:
        yield note(error)


def _check_replica_lag(connection: Connection, plan: Plan) -> Iterator[Finding]:
    """Find a limit without effect: the workers would not see the replicas fall behind."""
    if plan.database.max_replica_lag is None:
        return
    if not fetch_one(connection, statement("sees_replicas"))["sees_replicas"]:
        what = "max_replica_lag has no effect: the owner of the schema rowferry may not see how far replicas are behind"
        yield problem(what, "grant pg_monitor to that owner, or leave max_replica_lag out of the plan")


def sample_entries(connection: Connection, plan: Plan, on_progress: OnProgress) -> list[Sample]:
    """Return legacy entries of each readable table, spread over its ids; one scan a table."""
    limit = max(MIN_SAMPLED, SAMPLED // max(1, len(plan.entries)))
    samples: list[Sample] = []
    for entries in plan.entries:
        on_progress(f"choosing examples of {entries.label}")
        try:
            with translated_errors(), connection.transaction():
                queries = EntryQueries.of(connection, entries)
                rows = connection.execute(queries.compose("sample_entries"), queries.parameters(most=limit)).fetchall()
        except DatabaseUnavailable:
            raise
        except RowferryError:
            continue  # the check of the table has reported it
        samples.append(Sample.of(entries, to_entries(rows)))
    return samples


def show_examples(samples: Iterable[Sample]) -> list[Finding]:
    return [
        note(f"{sample.entries.label}: for example {quote_key(old)} becomes {quote_key(new)}")
        for sample in samples
        for old, new in list(dict.fromkeys(sample.keys))[:EXAMPLES]
    ]


def check_emptiness(
    connection: Connection, plan: Plan, samples: Sequence[Sample], *, allow_empty: bool
) -> list[Finding]:
    """Return a problem where no table has a legacy entry, unless that is allowed."""
    if allow_empty or not plan.entries or len(samples) < len(plan.entries) or any(sample.keys for sample in samples):
        return []
    counts = ", ".join(_count_forms(connection, sample.entries) for sample in samples)
    remedy = "correct `from`, `key` or `where` in the plan, or add --allow-empty where all is migrated already"
    return [problem(f"there are 0 legacy entries to migrate: {counts}", remedy)]


def _count_forms(connection: Connection, entries: Entries) -> str:
    with translated_errors():
        queries = EntryQueries.of(connection, entries)
        row = fetch_one(connection, queries.compose("count_entries"), queries.parameters())
    return f"{entries.label} has {row['production']:,} in production form and {row['unexpected']:,} in neither"
