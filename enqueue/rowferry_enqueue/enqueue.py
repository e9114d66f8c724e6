"""Cuts the entries of a plan into batches and puts them in the queue, with one statement a table."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.types.json import Jsonb

from rowferry.db.connection import Connection, call, fetch_one, set_local, summarise, translate, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.plan import Entries, Plan
from rowferry.plan_file import plan_document
from rowferry_enqueue.checks.finding import refuse_first
from rowferry_enqueue.checks.queues.columns import check_queue_rows
from rowferry_enqueue.checks.rows.pairs import refuse_overwritten_objects
from rowferry_enqueue.checks.rows.reverting import refuse_irreversible
from rowferry_enqueue.checks.rows.scans import refuse
from rowferry_enqueue.checks.rows.tables import refuse_unfit_tables
from rowferry_enqueue.listing_batches import add_listings, find_listings, renew_ranges
from rowferry_enqueue.passes import Pass, Renewed, begin_pass, preview_pass
from rowferry_enqueue.refusals import (
    refuse_foreign_code,
    refuse_undoing,
    refuse_unfit_queues,
)
from rowferry_enqueue.request import Enqueued, EnqueueRequest, Within, describe_queues

NO_TIMEOUTS = {"lock_timeout": "0", "statement_timeout": "0"}
"""An enqueue of hundreds of millions of entries takes longer than a role may allow, and the next one waits for it."""

__all__ = ["EnqueueRequest", "Enqueued", "Within", "enqueue", "find_migration", "preview", "store_changed_plan"]


def enqueue(
    connection: Connection, plan: Plan, request: EnqueueRequest, on_added: Callable[[], None] = lambda: None
) -> list[Enqueued]:
    """Put all entries in the queue that are not waiting there yet: one pass.

    Of entries whose rows stay, those that have changed since their last pass, once that has ended. A second caller
    waits for the first, then finds nothing to add. Entries of batches in ERROR count as waiting: they are requeued, not
    enqueued again; where entries are read again (verify, revert, rows that stay), by this call. The plan is stored
    first and the batches in a second transaction, so that the migration can be paused meanwhile. `on_added` is called
    before that commits: no worker has seen the batches.
    Raises UsageError, and adds nothing, when the plan does not fit the database or the batches that wait, or is changed
    meanwhile.
    """
    with translated_refusals():
        with connection.transaction():
            wait_for_turn(connection, plan)
            refuse_unfit_tables(connection, plan)
            _refuse_queue(connection, plan, request)
            migration_id, revision = register(connection, plan)
        with connection.transaction():
            wait_for_turn(connection, plan)
            added = _add_batches(connection, plan, request, migration_id, revision)
            on_added()
            return added


def register(connection: Connection, plan: Plan) -> tuple[int, int]:
    """Store the plan and what it says of its queues; return the migration's id and the plan's revision."""
    with connection.transaction():
        wait_for_turn(connection, plan)
        queues = Jsonb(describe_queues(plan))
        (row,) = call(connection, "register_migration", plan.name, Jsonb(plan_document(plan)), queues)
    return row["migration_id"], row["revision"]


def store_changed_plan(connection: Connection, plan: Plan) -> bool:
    """Store the plan of a migration that is there, and return whether it differs from the one that was stored.

    Raises UsageError where it does not fit the batches that wait.
    """
    with translated_refusals(), connection.transaction():
        before = connection.execute(statement("find_migration"), {"name": plan.name}).fetchone()
        return before is not None and register(connection, plan)[1] != before["revision"]


def preview(connection: Connection, plan: Plan, request: EnqueueRequest) -> list[Enqueued]:
    """Return what `enqueue` would put in the queue, and write nothing."""
    with translated_refusals(), connection.transaction():
        set_local(connection, **NO_TIMEOUTS)
        refuse_unfit_tables(connection, plan)
        _refuse_queue(connection, plan, request)
        migration_id = find_migration(connection, plan.name)
        listings = find_listings(connection, plan, request, migration_id)
        tables = list(_enqueue_tables(connection, plan, request, migration_id, "count_chunks"))
        return tables + add_listings(connection, listings, request, tables)


def _refuse_queue(connection: Connection, plan: Plan, request: EnqueueRequest) -> None:
    """Raise UsageError where a side is missing, rows do not tell their objects, or legacy objects would be replaced."""
    refuse_foreign_code(plan, request.queue)
    refuse_unfit_queues(connection, plan, request.queue)
    chosen = request.choose(plan)
    if request.queue.gives_form == "legacy":
        refuse_undoing(connection, plan, request)
    _refuse_unreadable(connection, plan, request, chosen)
    if request.queue.needs_way_back:
        refuse_irreversible(connection, chosen, request.queue.name)
    refuse_overwritten_objects(connection, plan, [entries for entries in chosen if request.replaces(entries)])


def _refuse_unreadable(connection: Connection, plan: Plan, request: EnqueueRequest, chosen: Sequence[Entries]) -> None:
    """Raise UsageError where the queue cannot read what it needs of the rows."""
    settings = request.queue.read_settings(plan)
    for entries in chosen:
        queries = EntryQueries.of(connection, entries)
        refuse_first(check_queue_rows(connection, queries, request.queue, settings, as_worker=False))


def find_migration(connection: Connection, name: str) -> int | None:
    """Return a migration's id; None where it was never enqueued, or the database has no schema yet."""
    with translated_errors():
        if not fetch_one(connection, statement("has_schema"))["has_schema"]:
            return None
        row = connection.execute(statement("find_migration"), {"name": name}).fetchone()
    return row["id"] if row else None


def wait_for_turn(connection: Connection, plan: Plan) -> None:
    """Lock out every other enqueue of this migration until the transaction ends, however long that takes."""
    set_local(connection, **NO_TIMEOUTS)
    connection.execute(statement("lock_enqueue"), {"name": plan.name})


def _add_batches(
    connection: Connection, plan: Plan, request: EnqueueRequest, migration_id: int, revision: int
) -> list[Enqueued]:
    listings = find_listings(connection, plan, request, migration_id)
    call(connection, "renew_batches", migration_id, request.queue.name, Jsonb(request.payload()))
    renew_ranges(connection, listings, request, migration_id)
    added = list(_enqueue_tables(connection, plan, request, migration_id, "insert_batches"))
    target = {"migration_id": migration_id, "max_attempts": plan.migration.max_attempts}
    added += add_listings(connection, listings, request, added, target)
    (row,) = call(connection, "record_pass", migration_id, revision)
    if not row["record_pass"]:
        raise UsageError(f"The plan of migration {plan.name} was changed meanwhile: run `rowferry enqueue` again.")
    return added


def _enqueue_tables(
    connection: Connection, plan: Plan, request: EnqueueRequest, migration_id: int | None, action: str
) -> Iterator[Enqueued]:
    left, form, where = request.limit, request.find_form(plan), request.find_condition(plan)
    for entries in request.choose(plan):
        queries = EntryQueries.of(connection, entries)
        choices, found = request.payload(entries), None
        if request.makes_pass(entries):
            begins = action == "insert_batches"
            found = _find_pass(connection, plan, queries, request, migration_id, begins=begins)
            if found is None:
                yield Enqueued(entries.label, 0, 0, goes_on=request.is_first)
                continue
            choices |= found.choices
        parameters = queries.parameters(
            **_describe_batches(plan, entries, request, migration_id),
            choices=Jsonb(choices),
            limit=left,
            since=found and found.since,
            keys=list(request.within.keys or ()),
        )
        has_form = queries.has_form_since(form, has_since=found is not None and found.since is not None)
        wanted = sql.SQL("{} and {}").format(has_form, queries.meets(where))
        if request.within.keys is not None:
            wanted = sql.SQL("{} and {}").format(wanted, queries.names_any(form))
        with _blamed(entries, request.within):
            row = fetch_one(connection, _compose(queries, request, wanted, action, migration_id), parameters)
        renewed = found.renewed if found else Renewed()
        yield Enqueued(
            entries.label,
            row["batches"] + renewed.batches,
            row["entries"] + renewed.entries,
            held_back_by=found and found.held_back_by,
        )
        left = None if left is None else left - row["entries"]


def _describe_batches(
    plan: Plan, entries: Entries, request: EnqueueRequest, migration_id: int | None
) -> dict[str, Any]:
    return {
        "migration_id": migration_id,
        "label": entries.label,
        "queue": request.queue.name,
        "max_attempts": plan.migration.max_attempts,
        "batch_size": request.batch_size,
    }


def _find_pass(
    connection: Connection,
    plan: Plan,
    queries: EntryQueries,
    request: EnqueueRequest,
    migration_id: int | None,
    *,
    begins: bool,
) -> Pass | None:
    """Return the pass that begins, or would begin unless it `begins`; None: none does."""
    if not request.is_first:
        return None
    if migration_id is None or not begins:
        return preview_pass(connection, queries, request.queue.name, migration_id, plan_document(plan))
    choices = request.payload(queries.entries)
    return begin_pass(connection, queries, request.queue.name, migration_id, choices, is_whole=request.is_whole)


def _compose(
    queries: EntryQueries, request: EnqueueRequest, wanted: sql.Composable, action: str, migration_id: int | None
) -> sql.Composed:
    """Return the one statement over a table, for the entries that meet the condition `wanted`."""
    limit = sql.SQL("") if request.limit is None else statement("free_entries_limit")
    within = request.within.list_bounds(queries.entries)
    bounds = [queries.ids.compose_bound(name, values) for name, values in within.items()]
    wanted = sql.SQL(" and ").join([wanted, *bounds])
    waiting = queries.compose("no_waiting_ranges" if migration_id is None else "waiting_ranges")
    free_entries = queries.compose("free_entries", wanted=wanted, limit=limit, waiting_ranges=waiting)
    return statement(action, chunks=queries.compose("chunks", free_entries=free_entries))


@contextmanager
def _blamed(entries: Entries, within: Within) -> Generator[None]:
    """Turn a value that PostgreSQL cannot compute with into UsageError, which names what it may come from."""
    try:
        yield
    except errors.InvalidParameterValue:
        raise  # the queue's own refusal
    except psycopg.DataError as error:
        found = refuse(entries, error)
        bounds = "correct --first or --last" if within.first or within.last else ""
        remedy = ", or ".join(each for each in (bounds, found.remedy) if each)
        raise UsageError(f"{found.what}; {remedy}." if remedy else f"{found.what}.") from error


@contextmanager
def translated_refusals() -> Generator[None]:
    """Translate errors of psycopg; where a plan does not fit the batches that wait, the server's message says it."""
    try:
        yield
    except errors.InvalidParameterValue as error:
        message = summarise(error)
        raise UsageError(f"{message[:1].upper()}{message[1:]}.") from error
    except psycopg.Error as error:
        raise translate(error) from error
