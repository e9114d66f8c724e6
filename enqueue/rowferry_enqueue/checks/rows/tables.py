"""Checks tables: they and their columns exist and are fit, and this role may read and update them."""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
from psycopg import errors

from rowferry.db.connection import Connection, summarise
from rowferry.db.description import Description, describe
from rowferry.db.entries import EntryQueries, fits
from rowferry.db.row_security import REMEDY, find_withheld
from rowferry.errors import UsageError
from rowferry.formatting import count
from rowferry.plan import Entries, Plan
from rowferry_enqueue.checks.finding import Finding, find_problems, fine, problem
from rowferry_enqueue.checks.rows.expressions import check_expressions
from rowferry_enqueue.checks.rows.scans import ask, refuse
from rowferry_enqueue.checks.rows.table_shape import (
    GRANTS,
    judge_table,
    judge_together,
    name_id,
    note_peculiarities,
)


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """The findings about one [[entries]]."""

    entries: Entries
    findings: tuple[Finding, ...]
    described: Description | None = None
    usable: tuple[EntryQueries, ...] = ()
    """One where the keys can be read, else none."""


def refuse_unfit_tables(connection: Connection, plan: Plan) -> None:
    """Raise UsageError when a table of the plan is unfit; reads the catalogue, and no row.

    Does not ask for the right to update, which workers need: their role may be another. Raises DatabaseUnavailable
    when the connection is lost.
    """
    checked = [check_table(connection, entries) for entries in plan.entries]
    found = [finding for table in checked for finding in table.findings] + check_together(checked)
    if problems := find_problems(found):
        raise UsageError(" ".join(problem.sentence for problem in problems))


def check_table(connection: Connection, entries: Entries) -> CheckedTable:
    """Check the table of one [[entries]], but no row. Raises DatabaseUnavailable when the connection is lost."""
    try:
        with connection.transaction():
            described = describe(connection, entries)
    except psycopg.Error as error:
        return CheckedTable(entries, (refuse(entries, error),))
    problems = tuple(judge_table(entries, described))
    if described.missing or not described.may_select or not fits(entries, described):
        return CheckedTable(entries, problems, described)
    queries = EntryQueries(entries, described)
    probed = (
        tuple(check_expressions(connection, queries))
        or tuple(_probe(connection, queries))
        or tuple(_find_null_ids(connection, queries))
    )
    findings = (*problems, *probed)
    if find_problems(probed):
        return CheckedTable(entries, findings, described)
    return CheckedTable(entries, findings, described, (queries,))


def check_together(checked: list[CheckedTable]) -> list[Finding]:
    """Return the problems of tables that are fit each by itself."""
    return list(judge_together([(table.entries, table.described) for table in checked if table.described is not None]))


def check_rights_and_rows(connection: Connection, table: CheckedTable, *, moves: bool) -> Iterator[Finding]:
    """Yield what only `rowferry check` says: rights, peculiarities, ids that repeat. `moves`: rows may be rewritten."""
    entries, described = table.entries, table.described
    if described is None or described.missing:
        return
    forbidden = find_withheld(entries, described, update=True) if moves else None
    may_do = (described.may_update or not moves) and forbidden is None
    if forbidden is not None:
        yield problem(forbidden, REMEDY)
    if moves and not described.may_update:
        *others, last = entries.written_columns
        columns = f"{', '.join([*others, last])} of {entries.table}" if others else f"{entries.table}.{last}"
        yield problem(f"this role may not update {columns}", GRANTS)
    if not table.usable:
        return
    if not described.id_unique and described.id_unique_by_partition:
        yield from _find_repeated_ids(connection, table.usable[0])
    if not find_problems(table.findings):
        yield from note_peculiarities(entries, described)
        if may_do:
            unique = "is unique" if described.id_unique else "is unique within each partition"
            kind = (
                f"{entries.key} is {described.key_type if entries.path else 'text'}, " if entries.has_two_texts else ""
            )
            does = "read and update it" if entries.written_columns and moves else "read it"
            yield fine(f"{entries.table}: {entries.id_words} {unique}, {kind}this role may {does}")


def _find_null_ids(connection: Connection, queries: EntryQueries) -> Iterator[Finding]:
    """Yield how many entries no batch could name; one scan, of a table whose rows stay and whose ids may be null."""
    entries = queries.entries
    if queries.found.id_not_null or entries.rows == "move":
        return
    asked = ask(connection, queries.compose("count_null_ids"), queries.parameters())
    if isinstance(asked, psycopg.Error):
        yield refuse(entries, asked)
    elif rows := asked[0]["rows"]:
        what = f"{count(rows, 'row', 'rows')} of {entries.table} {'has' if rows == 1 else 'have'} no {entries.id_words}"
        remedy = "name columns that are `not null`, or leave these rows out by `where`"
        yield problem(f"{what}, so no batch could name them", remedy)


def _find_repeated_ids(connection: Connection, queries: EntryQueries) -> Iterator[Finding]:
    asked = ask(connection, queries.compose("repeated_ids"), queries.parameters())
    if isinstance(asked, psycopg.Error):
        yield refuse(queries.entries, asked)
    elif asked:
        what = f"{name_id(queries.entries)} repeats in different partitions, for example {asked[0]['id']}"
        yield problem(what, "name a column whose values do not, or each partition in [[entries]] of its own")


def _probe(connection: Connection, queries: EntryQueries) -> Iterator[Finding]:
    """Yield the problems that only a query shows: of the condition, the rights for it, and the order of ids."""
    asked = ask(connection, queries.compose("probe_entries"), queries.parameters())
    if isinstance(asked, errors.UndefinedFunction) and "ordering operator" in summarise(asked):
        what = f"{name_id(queries.entries)} is {queries.ids.type}, which has no order"
        yield problem(what, "name another column, of a type that PostgreSQL can sort")
    elif isinstance(asked, psycopg.Error):
        yield refuse(queries.entries, asked)
