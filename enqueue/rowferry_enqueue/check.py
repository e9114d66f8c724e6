"""Holds a plan against the real database and the real buckets before anything is migrated; finds every problem."""

from collections.abc import Iterator

from rowferry.db.connection import Connection, fetch_one
from rowferry.db.entries import EntrySql
from rowferry.db.schema import check_version
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.plan import OnConflict, Plan
from rowferry.s3.listing import OnProgress, ignore_progress
from rowferry_enqueue.check_buckets import check_buckets
from rowferry_enqueue.check_collisions import check_collisions
from rowferry_enqueue.check_keys import check_keys
from rowferry_enqueue.check_tables import CheckedTable, check_rights_and_rows, check_table, check_together
from rowferry_enqueue.finding import Finding, note, problem
from rowferry_enqueue.samples import check_emptiness, knows_migration, sample_entries, show_examples

__all__ = ["Finding", "check_plan", "check_rows"]


def check_plan(
    connection: Connection,
    plan: Plan,
    *,
    on_conflict: OnConflict = "fail",
    allow_empty: bool = False,
    may_write: bool = True,
    on_progress: OnProgress = ignore_progress,
) -> list[Finding]:
    """Return all that can be said of a plan, in the order of tables, keys and buckets.

    Writes a probe object to the production bucket and removes it again, unless `may_write` is false; nothing else.
    `on_conflict` says what the migration will do where a different production object stands: unless it is "fail" that
    is a note, not a problem. `allow_empty`: that there is no legacy entry is no problem.
    Raises DatabaseUnavailable when the connection is lost.
    """
    findings = list(check_rows(connection, plan, on_conflict, on_progress))
    samples = sample_entries(connection, plan, on_progress)
    findings += show_examples(samples)
    findings += check_emptiness(connection, plan, samples, allow_empty=allow_empty)
    is_new = not knows_migration(connection, plan)
    return [*findings, *check_buckets(plan, on_progress, samples, may_write=may_write, is_new=is_new)]


def check_rows(
    connection: Connection, plan: Plan, on_conflict: OnConflict, on_progress: OnProgress
) -> Iterator[Finding]:
    """Yield what the database shows; asks the buckets only where production entries are in the way."""
    yield from _check_server(connection)
    yield from _check_replica_lag(connection, plan)
    usable: list[EntrySql] = []
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
    yield from check_collisions(connection, plan, usable, on_conflict, on_progress)


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
    """Find a bound that would never hold anybody back, since nobody would see the replicas fall behind."""
    if plan.database.max_replica_lag is None:
        return
    if not fetch_one(connection, statement("sees_replicas"))["sees_replicas"]:
        what = (
            "max_replica_lag cannot be kept: the owner of the schema rowferry may not see how far replicas are behind"
        )
        yield problem(what, "grant pg_monitor to that owner, or leave max_replica_lag out of the plan")
