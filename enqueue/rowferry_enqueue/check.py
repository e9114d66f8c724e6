"""Compares a plan with the real database and the real buckets before anything is migrated; reports every problem."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from rowferry.db.connection import Connection, fetch_one
from rowferry.db.entries import EntryQueries
from rowferry.db.schema import check_version
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.plan import OnConflict, Plan
from rowferry.progress import OnProgress, ignore_progress
from rowferry.reports.coverage import Coverage
from rowferry_enqueue.checks.buckets.access import check_buckets, check_readable_buckets
from rowferry_enqueue.checks.buckets.companions import check_companions
from rowferry_enqueue.checks.buckets.coverage import check_coverage
from rowferry_enqueue.checks.buckets.samples import check_samples, sample_entries
from rowferry_enqueue.checks.buckets.taken_keys import check_taken_keys
from rowferry_enqueue.checks.finding import Finding, note, problem
from rowferry_enqueue.checks.queues.queue_check import check_queues
from rowferry_enqueue.checks.rows.connections import check_connections
from rowferry_enqueue.checks.rows.keys import check_keys
from rowferry_enqueue.checks.rows.pairs import check_one_bucket
from rowferry_enqueue.checks.rows.reverting import check_reverting
from rowferry_enqueue.checks.rows.scans import run_check, tell_unscanned
from rowferry_enqueue.checks.rows.tables import CheckedTable, check_rights_and_rows, check_table, check_together
from rowferry_enqueue.checks.rows.trial_update import try_updates
from rowferry_enqueue.enqueue import find_migration

__all__ = ["Finding", "check_plan", "check_rows"]


def check_plan(
    connection: Connection,
    plan: Plan,
    *,
    on_conflict: OnConflict | None = None,
    allow_empty: bool = False,
    may_write: bool = True,
    on_progress: OnProgress = ignore_progress,
    coverage: list[Coverage] | None = None,
    facts: dict[str, bool | str] | None = None,
) -> Iterator[Finding]:
    """Yield the findings about tables, keys and buckets, in this order, each as soon as it is known.

    Writes probe objects to the production bucket and removes them, unless `may_write` is false; writes nothing else.
    `on_conflict`: what the migration will do where a different production object exists; only with "fail", or
    None, is that a problem. `allow_empty`: it is no problem that there is no legacy entry. Adds to `coverage` which
    folders of the legacy bucket the plan names, unless there is a problem; to `facts` what the servers were seen to do.
    Raises DatabaseUnavailable when the connection is lost.
    """
    has_problem = False
    for finding in _check_all(
        connection, plan, on_conflict, on_progress, allow_empty=allow_empty, may_write=may_write, facts=facts
    ):
        has_problem = has_problem or finding.level == "problem"
        yield finding
    if plan.has_both_sides and plan.parts and not has_problem:
        found = [] if coverage is None else coverage
        yield from run_check(lambda: list(check_coverage(connection, plan, on_progress, found)))


def _check_all(
    connection: Connection,
    plan: Plan,
    on_conflict: OnConflict | None,
    on_progress: OnProgress,
    *,
    allow_empty: bool,
    may_write: bool,
    facts: dict[str, bool | str] | None,
) -> Iterator[Finding]:
    checked: list[CheckedTable] = []
    yield from check_rows(connection, plan, on_conflict, on_progress, checked)
    if lack_names(checked):
        yield note("the buckets were not looked at: correct the names in the plan first")
        return
    queues = partial(check_queues, connection, plan, checked, may_write=may_write, on_progress=on_progress)
    yield from run_check(lambda: list(queues()))
    if not (plan.has_both_sides and plan.parts):
        yield from check_readable_buckets(plan, on_progress)
        return
    tables = [queries for table in checked for queries in table.usable]
    samples, unscanned = sample_entries(connection, tables, on_progress)
    yield from unscanned
    yield from run_check(lambda: list(check_samples(connection, plan, samples, allow_empty=allow_empty)))
    yield from check_companions(plan, samples)
    is_new = find_migration(connection, plan.name) is None
    may_be_empty = allow_empty or not is_new
    yield from check_buckets(
        plan,
        on_progress,
        samples,
        may_write=may_write,
        is_new=is_new,
        may_be_empty=may_be_empty,
        facts=facts,
    )


def check_rows(
    connection: Connection,
    plan: Plan,
    on_conflict: OnConflict | None,
    on_progress: OnProgress,
    checked: list[CheckedTable] | None = None,
) -> Iterator[Finding]:
    """Yield what the database shows; asks the buckets only about collisions with production entries.

    Adds to `checked` what was found of each table.
    """
    yield from _check_server(connection)
    yield from check_connections(connection, plan)
    yield from _check_replica_lag(connection, plan)
    usable: list[EntryQueries] = []
    checked = [] if checked is None else checked
    for entries in plan.entries:
        on_progress(f"looking at {entries.label}")
        table = check_table(connection, entries)
        checked.append(table)
        usable.extend(table.usable)
        yield from table.findings
        yield from check_rights_and_rows(connection, table, moves=plan.has_both_sides)
    if not plan.has_both_sides:  # so no row moves
        return
    yield from check_together(checked)
    yield from check_keys(connection, usable, on_progress)
    yield from tell_unscanned(plan.entries, usable)
    checked[:] = [replace(table, usable=tuple(one for one in table.usable if one in usable)) for table in checked]
    yield from check_one_bucket(connection, plan, usable, on_progress)
    yield from check_reverting(connection, usable)
    yield from try_updates(connection, usable)
    if not lack_names(checked):
        yield from check_taken_keys(connection, plan, usable, on_conflict or "fail", on_progress)


def lack_names(checked: Sequence[CheckedTable]) -> bool:
    """Return whether the plan names a table or a column that is not there: nothing is sent to a bucket for it."""
    return any(table.described is not None and table.described.lacks_name(table.entries) for table in checked)


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
