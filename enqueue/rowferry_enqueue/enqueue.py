"""Cuts the entries of a plan into batches and puts them in the queue, with one statement a table."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg import errors, sql
from psycopg.types.json import Jsonb

from rowferry.batch import DEFAULT_BATCH_SIZE
from rowferry.db.connection import Connection, call, fetch_one, summarise, translate, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.plan import Entries, OnConflict, Plan
from rowferry.plan_file import plan_document
from rowferry_enqueue.check_tables import refuse_unfit_tables

Repair = Literal["nothing", "older", "all"]
"""What `verify` copies again: nothing; what is missing or older than its legacy object; all that differs."""


@dataclass(frozen=True, slots=True)
class Within:
    """Limits a request to one table, or to a range of its ids, both ends included; all None: no limit."""

    table: str | None = None
    """A table, or `table.key`, as the plan names it."""
    first: str | None = None
    last: str | None = None

    def choose(self, plan: Plan) -> Sequence[Entries]:
        """Return the [[entries]] that are meant. Raises UsageError where there are none, or ids of several tables."""
        chosen = [entries for entries in plan.entries if self.table in {None, entries.table, entries.label}]
        if not chosen:
            known = ", ".join(dict.fromkeys(entries.table for entries in plan.entries))
            raise UsageError(f"The plan has no table {self.table}; it has {known}.")
        if (self.first or self.last) and len({(entries.table, entries.ids) for entries in chosen}) > 1:
            raise UsageError("The ids are those of one table: name it with --table.")
        return chosen


@dataclass(frozen=True, slots=True)
class Request:
    """Which batches to make, and what their workers shall do."""

    batch_size: int = DEFAULT_BATCH_SIZE
    limit: int | None = None
    """Entries at most, over all tables."""
    on_conflict: OnConflict = "fail"
    queue: Literal["migrate", "verify", "revert"] = "migrate"
    within: Within = Within()
    deep: bool = False
    """verify: read the bytes of both objects, even if their ETags are equal."""
    repair: Repair = "nothing"

    @property
    def form(self) -> Literal["legacy", "production"]:
        """The form of the keys that the queue works on."""
        return "legacy" if self.queue == "migrate" else "production"

    @property
    def choices(self) -> dict[str, Any]:
        """The payload of a batch, beside its range.

        `read_again` names the outcomes whose entries the next attempt at a batch reads again.
        """
        match self.queue:
            case "verify":
                return {"deep": self.deep, "repair": self.repair, "read_again": ["migrated", "kept"]}
            case "revert":
                return {"read_again": ["kept"]}
            case _:
                return {"on_conflict": self.on_conflict}


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The batches that one pass added, or would add, for one table."""

    label: str
    batches: int
    entries: int


def enqueue(connection: Connection, plan: Plan, request: Request) -> list[Enqueued]:
    """Put all entries in the queue that are not waiting there yet: one pass.

    A second caller waits for the first, then finds nothing to add. Entries of batches in ERROR count as waiting: they
    are requeued, not enqueued again; for queues that read entries again (verify, revert), by this call. The plan is
    stored first and the batches in a second transaction, so that the migration can be paused meanwhile.
    Raises UsageError, and adds nothing, when the plan does not fit the database or the batches that wait, or is changed
    meanwhile.
    """
    with _translated():
        with connection.transaction():
            _wait_for_turn(connection, plan)
            refuse_unfit_tables(connection, plan)
            (row,) = call(connection, "register_migration", plan.name, Jsonb(plan_document(plan)))
        with connection.transaction():
            _wait_for_turn(connection, plan)
            return _add_batches(connection, plan, request, row["migration_id"], row["revision"])


def preview(connection: Connection, plan: Plan, request: Request) -> list[Enqueued]:
    """Return what `enqueue` would put in the queue, and write nothing."""
    with _translated(), connection.transaction():
        connection.execute(statement("lift_timeouts"))
        refuse_unfit_tables(connection, plan)
        migration_id = find_migration(connection, plan.name)
        return list(_enqueue_tables(connection, plan, request, migration_id, "count_chunks"))


def find_migration(connection: Connection, name: str) -> int | None:
    """Return a migration's id; None where it was never enqueued, or the database has no schema yet."""
    with translated_errors():
        if not fetch_one(connection, statement("has_schema"))["has_schema"]:
            return None
        row = connection.execute(statement("find_migration"), {"name": name}).fetchone()
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
        raise UsageError(f"The plan of migration {plan.name} was changed meanwhile: run `rowferry enqueue` again.")
    return added


def _enqueue_tables(
    connection: Connection, plan: Plan, request: Request, migration_id: int | None, action: str
) -> Iterator[Enqueued]:
    left = request.limit
    for entries in request.within.choose(plan):
        queries = EntryQueries.of(connection, entries)
        parameters = queries.parameters(
            migration_id=migration_id,
            label=entries.label,
            queue=request.queue,
            choices=Jsonb(request.choices),
            max_attempts=plan.migration.max_attempts,
            batch_size=request.batch_size,
            first_wanted=request.within.first,
            last_wanted=request.within.last,
            limit=left,
        )
        # Without a migration there may be no queue either: the dry run asks for neither.
        waits = migration_id is not None and fetch_one(connection, statement("has_waiting"), parameters)["has_waiting"]
        if waits:
            connection.execute(statement("keep_ranges_in_memory"))
        row = fetch_one(connection, _compose(queries, request, action, beside_waiting=waits), parameters)
        yield Enqueued(entries.label, row["batches"], row["entries"])
        left = None if left is None else left - row["entries"]


def _compose(queries: EntryQueries, request: Request, action: str, *, beside_waiting: bool) -> sql.Composed:
    """Return the one statement over a table."""
    limit = sql.SQL("") if request.limit is None else statement("free_entries_limit")
    wanted = sql.SQL(" and ").join([queries.has_form(request.form), queries.compose("is_within")])
    name = "free_entries_beside_waiting" if beside_waiting else "free_entries"
    free_entries = queries.compose(name, wanted=wanted, limit=limit)
    return statement(action, chunks=queries.compose("chunks", free_entries=free_entries))


@contextmanager
def _translated() -> Generator[None]:
    """Translate errors of psycopg; where a plan does not fit the batches that wait, the server's message says it."""
    try:
        yield
    except errors.InvalidParameterValue as error:
        message = summarise(error)
        raise UsageError(f"{message[:1].upper()}{message[1:]}.") from error
    except psycopg.Error as error:
        raise translate(error) from error
