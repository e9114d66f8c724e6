"""What `rowferry check` finds about [queue.inspect]: its function, its columns, the key of its side table."""

from collections.abc import Iterator

from psycopg import sql

from rowferry.db.connection import fetch_one
from rowferry.db.description import describe_columns, split_table
from rowferry.db.statements import statement
from rowferry.errors import MigrationFault
from rowferry.functions import load_function
from rowferry_enqueue.checks.finding import Finding, fine, note, problem
from rowferry_enqueue.checks.queues.queue_check import QueueCheck
from rowferry_queues.inspect.content import ZSTD
from rowferry_queues.inspect.content_types import measure_image
from rowferry_queues.inspect.spec import DIMENSIONS, FACTS, InspectSettings

FITTING = {"number": ("N", "a number"), "digest": ("S", "text or bytea"), "text": ("S", "text")}
"""The category of a column for each kind of value, as pg_type.typcategory has it, and its words."""


def check(context: QueueCheck) -> Iterator[Finding]:
    """Yield what is missing here and in the database; missing tables and columns were found before."""
    settings: InspectSettings = context.settings
    try:
        if settings.function is not None:
            load_function(settings.function)
        if settings.facts & DIMENSIONS:
            measure_image(b"")
    except MigrationFault as error:
        yield problem(error)
    if settings.inflate == "auto" and ZSTD is None:
        yield note("zstd cannot be read here: objects that it has compressed will fail", "install rowferry[inspect]")
    tables = [settings.table] if settings.table else [queries.entries.table for queries in context.tables]
    for table in dict.fromkeys(tables):
        findings = list(_check_table(context, settings, table))
        yield from findings or [fine(f"{table} has the columns of [queue.inspect]")]


def _check_table(context: QueueCheck, settings: InspectSettings, table: str) -> Iterator[Finding]:
    """Yield the columns whose type does not fit, and a side table without an index by which rows are updated."""
    kinds = {column: FACTS[fact] for fact, column in settings.columns.items() if fact in FACTS}
    if settings.key is not None:
        kinds[settings.key] = "text"
    found = describe_columns(context.connection, table, kinds) or {}
    for name, column in found.items():
        category, words = FITTING[kinds[name]]
        if column.category not in category and (kinds[name], column.type) != ("digest", "bytea"):
            what = f"{table}.{name} is {column.type}, but [queue.inspect] writes {words} into it"
            yield problem(what, "change its type, or name another column")
    if settings.table is not None:
        name = sql.Identifier(*split_table(table)).as_string(context.connection)
        parameters = {"table": name, "columns": list(settings.keys)}
        if not fetch_one(context.connection, statement("has_unique_key"), parameters)["has_unique_key"]:
            what = f"{table} has no unique index of ({', '.join(settings.keys)}) alone"
            yield problem(what, "create one, so that rows can be updated")
