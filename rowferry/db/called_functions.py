"""Which functions the SQL of a plan may call: it comes from whoever may enqueue, and runs as every worker's role."""

import os
from collections.abc import Iterable

from psycopg import errors, sql

from rowferry.db.connection import Connection
from rowferry.db.entries import EntryQueries
from rowferry.db.forms import compute_keys
from rowferry.db.statements import statement
from rowferry.errors import MigrationFault
from rowferry.plan import Entries

ALLOWED_SQL_FUNCTIONS = "ROWFERRY_ALLOWED_SQL_FUNCTIONS"
"""Comma separated `schema.function`, or the name of an extension for all of its functions."""
EXTENSIONS = ("citext", "hstore", "ltree", "pg_trgm", "pgcrypto", "unaccent", "uuid-ossp")
"""Extensions whose functions compute, and run no SQL."""


def list_expressions(queries: EntryQueries) -> list[sql.Composable]:
    """Return the SQL that a plan has for one table."""
    entries: Entries = queries.entries
    conditions = [queries.meets(entries.where)] if entries.where else []
    return conditions + [compute_keys(each) for each in (entries.objects, entries.optional) if each]


def refuse_functions(connection: Connection, queries: EntryQueries, expressions: Iterable[sql.Composable]) -> None:
    """Raise MigrationFault where the SQL calls a function that is not PostgreSQL's own or allowed, or a volatile one.

    PostgreSQL itself says what it would call: of a temporary view, which is taken back. Views, operators and domains
    that the SQL uses are followed.
    """
    values = sql.SQL(", ").join(
        sql.SQL("{} as {}").format(each, sql.Identifier(f"value {number}")) for number, each in enumerate(expressions)
    )
    allowed = [*EXTENSIONS, *(each.strip() for each in os.environ.get(ALLOWED_SQL_FUNCTIONS, "").split(","))]
    if not values.as_string():
        return
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(queries.compose("make_expressions", expressions=values), {})
            found = connection.execute(statement("find_refused_functions"), {"allowed": allowed}).fetchone()
    except errors.InsufficientPrivilege as error:
        if "temporary" not in str(error):
            raise
        words = "may not make temporary views, by which the functions of the plan's SQL are looked up"
        raise MigrationFault(f"This role {words}: grant it TEMPORARY on the database.") from error
    if found is not None:
        why = "is volatile" if found["is_volatile"] else f"is neither PostgreSQL's own nor in {ALLOWED_SQL_FUNCTIONS}"
        remedy = "call another one" if found["is_volatile"] else "add it there, for the workers too, or call another"
        raise MigrationFault(f"The SQL of {queries.entries.label} calls {found['name']}, which {why}: {remedy}.")
