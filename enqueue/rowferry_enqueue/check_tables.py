"""The check of one table: it and its columns exist and can serve, and this role may read and update them."""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
from psycopg import errors, sql

from rowferry.database import Connection, fetch_one, summarise, translate
from rowferry.entry_sql import Description, EntrySql, describe, split_table
from rowferry.errors import DatabaseUnavailable
from rowferry.plan import Entries
from rowferry_enqueue.finding import Finding, fine, note, problem

GRANTS = "see `rowferry init --grants`"


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """What was found, and the SQL face of the entries when their keys can be read: one or none."""

    findings: tuple[Finding, ...]
    usable: tuple[EntrySql, ...] = ()


def check_table(connection: Connection, entries: Entries) -> CheckedTable:
    """Look at the table of one [[entries]]. Raises DatabaseUnavailable when the connection is lost."""
    try:
        with connection.transaction():
            described = describe(connection, entries)
    except psycopg.Error as error:
        return CheckedTable((_refused(entries, error),))
    problems = list(_judge(entries, described))
    if described.id_type is None or described.key_type is None or not described.may_select:
        return CheckedTable(tuple(problems))
    entry_sql = EntrySql(entries, described.id_type)
    probed = list(_probe(connection, entry_sql))
    if any(finding.level == "problem" for finding in probed):
        return CheckedTable((*problems, *probed))
    if not problems:
        words = f"{entries.table}: {entries.id} is unique, {entries.key} is text, this role may read and update it"
        probed.append(fine(words))
    return CheckedTable((*problems, *probed), (entry_sql,))


def _judge(entries: Entries, described: Description) -> Iterator[Finding]:
    """Yield what the catalogue alone tells to be wrong."""
    table = entries.table
    if not described.has_table:
        yield problem(f"there is no table {table} in this database", "correct `table` in the plan, or its search_path")
        return
    if described.id_type is None:
        yield problem(f"{table} has no column {entries.id}", "correct `id` in the plan")
    else:
        if not described.id_unique:
            remedy = "name a primary key, or make a unique index over this column alone"
            yield problem(f"{table}.{entries.id} is not unique", remedy)
        if not described.id_not_null:
            yield problem(f"{table}.{entries.id} may be null", "name a column that is `not null`")
    if described.key_type is None:
        yield problem(f"{table} has no column {entries.key}", "correct `key` in the plan")
        return
    if not described.key_is_text:
        yield problem(f"{entries.label} is {described.key_type}, not text", "correct `key` in the plan")
    if not described.may_update:
        yield problem(f"this role may not update {entries.label}", GRANTS)
    if described.id_type is not None and not described.may_select:
        yield problem(f"this role may not select {entries.id} and {entries.key} of {table}", GRANTS)


def _probe(connection: Connection, entry_sql: EntrySql) -> Iterator[Finding]:
    """Yield what only a query can tell: whether the condition, the rights for it and the order of ids hold."""
    entries = entry_sql.entries
    quoted_table = sql.Identifier(*split_table(entries.table)).as_string(connection)
    try:
        with connection.transaction():
            query = entry_sql.compose("probe_entries")
            row = fetch_one(connection, query, entry_sql.parameters(quoted_table=quoted_table))
    except psycopg.Error as error:
        if isinstance(error, errors.UndefinedFunction) and "min(" in summarise(error):
            yield problem(f"{entries.table}.{entries.id} is {entry_sql.id_type}, which cannot be cut into ranges")
        else:
            yield _refused(entries, error)
        return
    if row["row_security"]:
        yield note(f"row-level security of {entries.table} applies to this role: rows that it hides are not migrated")


def _refused(entries: Entries, error: psycopg.Error) -> Finding:
    """Return the problem that an error of the server is. Raises DatabaseUnavailable when the connection is lost."""
    known = translate(error)
    if isinstance(known, DatabaseUnavailable):
        raise known from error
    if isinstance(error, errors.InsufficientPrivilege):
        return problem(f"{entries.label} cannot be read: {summarise(error)}", GRANTS)
    remedy = "correct `where` in the plan" if entries.where else ""
    return problem(f"{entries.label} cannot be read: {summarise(error)}", remedy)
