"""What `rowferry check` finds about [queue.inspect]: its function, its columns, the key of its side table."""

from collections.abc import Iterator, Sequence

from psycopg import sql

from rowferry.db.connection import fetch_one
from rowferry.db.description import split_table
from rowferry.db.statements import statement
from rowferry.db.written_tables import WrittenColumn, describe_columns
from rowferry.errors import MigrationFault
from rowferry_enqueue.checks.finding import Finding, fine, note, problem
from rowferry_enqueue.checks.queues.queue_check import QueueCheck
from rowferry_queues.inspect.allowed import load_function
from rowferry_queues.inspect.inflating import can_read_zstd
from rowferry_queues.inspect.inspection import DIMENSIONS, measure_image
from rowferry_queues.inspect.spec import FACTS, InspectSettings

FITTING = {"number": "a number", "digest": "text or bytea", "text": "text"}


def check(context: QueueCheck) -> Iterator[Finding]:
    """Yield what is missing here and in the database."""
    settings: InspectSettings = context.settings
    yield from _check_packages(settings)
    if settings.table is None:
        tables = list(dict.fromkeys(queries.entries.table for queries in context.tables))
    else:
        tables = [settings.table]
        yield from _check_key(context, settings.table, settings.keys)
    for table in tables:
        findings = list(_check_columns(context, table))
        yield from findings or [fine(f"{table} has the columns of [queue.inspect]")]


def _check_packages(settings: InspectSettings) -> Iterator[Finding]:
    try:
        if settings.function is not None:
            load_function(settings.function)
        if settings.facts & DIMENSIONS:
            measure_image(b"")
    except MigrationFault as error:
        yield problem(error)
    if settings.inflate == "auto" and not can_read_zstd():
        yield note("zstd cannot be read here: objects that it has compressed will fail", "install rowferry[inspect]")


def _check_columns(context: QueueCheck, table: str) -> Iterator[Finding]:
    """Yield the columns whose type does not fit; those that are not there were found before."""
    settings: InspectSettings = context.settings
    kinds = {column: FACTS.get(fact, "any") for fact, column in settings.columns.items()}
    kinds |= dict.fromkeys(settings.ids, "any") | ({settings.key: "text"} if settings.key else {})
    found = describe_columns(context.connection, table, list(kinds))
    for column, kind in kinds.items():
        if column in found and not _fits(found[column], kind):
            what = f"{table}.{column} is {found[column].type}, but [queue.inspect] writes {FITTING[kind]} into it"
            yield problem(what, "change its type, or name another column")


def _fits(column: WrittenColumn, kind: str) -> bool:
    match kind:
        case "number":
            return column.category == "N"
        case "digest":
            return column.category == "S" or column.type == "bytea"
        case "text":
            return column.category == "S"
        case _:
            return True


def _check_key(context: QueueCheck, table: str, keys: Sequence[str]) -> Iterator[Finding]:
    name = sql.Identifier(*split_table(table)).as_string(context.connection)
    row = fetch_one(context.connection, statement("has_unique_key"), {"table": name, "columns": list(keys)})
    if not row["has_unique_key"]:
        columns = ", ".join(keys)
        yield problem(f"{table} has no unique index of ({columns}) alone", "create one, so that rows can be updated")
