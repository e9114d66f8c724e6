"""Cuts entries of a plan into batches and puts them in the queue, one statement a table."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import errors, sql
from psycopg.types.json import Jsonb

from rowferry.database import Connection, call, fetch_one, summarise, translate
from rowferry.entry_sql import EntrySql
from rowferry.errors import UserMistake
from rowferry.plan import Plan
from rowferry.plan_file import plan_document
from rowferry.statements import statement
from rowferry_enqueue.check_tables import refuse_unfit_tables
from rowferry_enqueue.request import DEFAULT_BATCH_SIZE, Request

__all__ = ["DEFAULT_BATCH_SIZE", "Enqueued", "Request", "enqueue", "preview"]


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What one pass put in the queue, or would put there, for one table."""

    label: str
    batches: int
    entries: int


def enqueue(connection: Connection, plan: Plan, request: Request) -> list[Enqueued]:
    """Put the entries that are not waiting yet in the queue: one pass.

    A second caller waits for the first and then finds nothing left to add. Entries in batches that are in ERROR
    count as waiting: they are requeued, not enqueued again; by the enqueue itself where its queue reads entries again
    (verify, revert). The plan is stored first, the batches in one transaction after it, so that the migration can be
    paused meanwhile. Raises UserMistake, and adds nothing, when the plan does not fit the database or the batches that
    wait, or is changed meanwhile.
    """
    with _worded():
        with connection.transaction():
            _wait_for_turn(connection, plan)
            refuse_unfit_tables(connection, plan)
            (row,) = call(connection, "register_migration", plan.name, Jsonb(plan_document(plan)))
        with connection.transaction():
            _wait_for_turn(connection, plan)
            return _add_batches(connection, plan, request, row["migration_id"], row["revision"])


def preview(connection: Connection, plan: Plan, request: Request) -> list[Enqueued]:
    """Return what `enqueue` would put in the queue, and write nothing."""
    with _worded(), connection.transaction():
        connection.execute(statement("lift_timeouts"))
        refuse_unfit_tables(connection, plan)
        migration_id = _find_migration(connection, plan)
        return list(_enqueue_tables(connection, plan, request, migration_id, "count_chunks"))


def _find_migration(connection: Connection, plan: Plan) -> int | None:
    """Return the id of the plan's migration; None where it was never enqueued, or the database has no schema yet."""
    if not fetch_one(connection, statement("has_schema"))["has_schema"]:
        return None
    row = connection.execute(statement("find_migration"), {"name": plan.name}).fetchone()
    return row["id"] if row else None


def _wait_for_turn(connection: Connection, plan: Plan) -> None:
    """Lock out every other enqueue of this migration until the transaction ends, however long that takes."""
    connection.execute(statement("lift_timeouts"))
    connection.execute(statement("lock_enqueue"), {"name": plan.name})


def _add_batches(
    connection: Connection, plan: Plan, request: Request, migration_id: int, revision: int
) -> list[Enqueued]:
    call(connection, "renew_batches", migration_id, request.queue, Jsonb(request.choices))
    added = list(_enqueue_tables(connection, plan, request, migration_id, "insert_batches"))
    (row,) = call(connection, "record_pass", migration_id, revision)
    if not row["record_pass"]:
        raise UserMistake(f"The plan of migration {plan.name} was changed meanwhile: run `rowferry enqueue` again.")
    return added


def _enqueue_tables(
    connection: Connection, plan: Plan, request: Request, migration_id: int | None, action: str
) -> Iterator[Enqueued]:
    left = request.limit
    for entries in request.within.choose(plan):
        entry_sql = EntrySql.of(connection, entries)
        parameters = entry_sql.parameters(
            migration_id=migration_id,
            label=entries.label,
            queue=request.queue,
            choices=Jsonb(request.choices),
            max_attempts=plan.max_attempts,
            batch_size=request.batch_size,
            first_wanted=request.within.first,
            last_wanted=request.within.last,
            limit=left,
        )
        # Where there is no migration yet there may be no queue either: a dry run asks for neither.
        waits = migration_id is not None and fetch_one(connection, statement("has_waiting"), parameters)["has_waiting"]
        if waits:
            connection.execute(statement("keep_ranges_in_memory"))
        row = fetch_one(connection, _compose(entry_sql, request, action, beside_waiting=waits), parameters)
        yield Enqueued(entries.label, row["batches"], row["entries"])
        left = None if left is None else left - row["entries"]


def _compose(entry_sql: EntrySql, request: Request, action: str, *, beside_waiting: bool) -> sql.Composed:
    """Return the one statement over a table."""
    limit = sql.SQL("") if request.limit is None else statement("free_entries_limit")
    wanted = sql.SQL(" and ").join([entry_sql.has_form(request.form), entry_sql.compose("is_within")])
    name = "free_entries_beside_waiting" if beside_waiting else "free_entries"
    free_entries = entry_sql.compose(name, wanted=wanted, limit=limit)
    return statement(action, chunks=entry_sql.compose("chunks", free_entries=free_entries))


@contextmanager
def _worded() -> Generator[None]:
    """Let a plan that does not fit the batches that wait speak for itself; word the rest as usual."""
    try:
        yield
    except errors.InvalidParameterValue as error:
        words = summarise(error)
        raise UserMistake(f"{words[:1].upper()}{words[1:]}.") from error
    except psycopg.Error as error:
        raise translate(error) from error
