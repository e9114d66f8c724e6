"""Checks that rows can go back: that `where` and `objects` say the same of a row before and after it has moved.

What a row would hold is computed by a query; nothing is written.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations
from typing import NamedTuple

from psycopg import errors, sql

from rowferry.db.connection import Connection, fetch_one, identifiers, literal, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.db.forms import simulate_columns
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.formatting import count
from rowferry.keys import Form
from rowferry.plan import Entries
from rowferry_enqueue.checks.finding import Finding, note, problem
from rowferry_enqueue.checks.rows.pairs import other_parameters, rename_parameters
from rowferry_enqueue.checks.rows.scans import ask, scan
from rowferry_enqueue.checks.rows.table_shape import share_rows

_COMMA = sql.SQL(", ")
Columns = Mapping[str, str | None]
"""The columns of a table, each with the expression that it is generated from."""


class _Change(NamedTuple):
    """What rewriting rows changes of other SQL of the plan."""

    left_out: int
    """Rows that no longer meet `where`."""
    renamed: int
    """Rows that have other objects."""
    example: str


def check_reverting(connection: Connection, usable: Sequence[EntryQueries]) -> Iterator[Finding]:
    """Yield what cannot go back, and [[entries]] that change what others of the same table say."""
    for queries in usable:
        yield from scan(connection, partial(_check_own, connection, queries), queries)
    for one, other in permutations(usable, 2):
        if share_rows(one.found, other.found):
            yield from scan(connection, partial(_check_beside, connection, one, other), one, other)


def _check_own(connection: Connection, queries: EntryQueries) -> list[Finding]:
    if (change := _find_change(connection, queries, queries, "legacy")) is None:
        return []
    return [note(f"{queries.entries.label}: {_describe(queries, change, 'its rows have moved')}", _REMEDY)]


def _check_beside(connection: Connection, one: EntryQueries, other: EntryQueries) -> list[Finding]:
    if (change := _find_change(connection, one, other, "legacy")) is None:
        return []
    what = _describe(one, change, f"rows of {other.entries.label} have moved")
    remedy = f"write that SQL over columns that {other.entries.label} leaves as they are"
    return [problem(f"{one.entries.label}: {what}", remedy)]


def refuse_irreversible(connection: Connection, chosen: Sequence[Entries], queue: str) -> None:
    """Raise UsageError where production rows do not tell which legacy objects they had."""
    for entries in chosen:
        if not (entries.reads_other_columns and entries.written_columns):
            continue
        queries = EntryQueries.of(connection, entries)
        if change := _find_change(connection, queries, queries, "production"):
            what = _describe(queries, change, "its rows have moved")
            raise UsageError(f"{queue.capitalize()} cannot work on {entries.label}: {what}; {_REMEDY}.")


_REMEDY = "write that SQL over columns that the migration leaves as they are, or so that it says the same of both"


def _describe(queries: EntryQueries, change: _Change, when: str) -> str:
    entries = queries.entries
    example = f", for example {entries.id_words} {change.example}"
    if change.left_out:
        rows = count(change.left_out, "row does not meet `where` any more", "rows do not meet `where` any more")
        return f"{rows} once {when}, so verify and revert could not find them{example}"
    rows = count(change.renamed, "row", "rows")
    return (
        f"`objects` yields other keys for {rows} once {when}, so verify and revert would look for "
        f"objects that never were{example}"
    )


def _find_change(connection: Connection, queries: EntryQueries, rewriting: EntryQueries, form: Form) -> _Change | None:
    """Return what the SQL of one [[entries]] says otherwise of rows once another, or itself, has rewritten them.

    `form`: that of the rows that are looked at; the other is computed. One scan, where that SQL reads such columns.
    """
    if not (queries.entries.reads_other_columns and rewriting.entries.written_columns):
        return None
    with translated_errors(), connection.transaction():
        parameters = {"table_number": queries.found.table_number}
        columns = {
            row["name"]: row["expression"] for row in connection.execute(statement("list_readable_columns"), parameters)
        }
        if not _reads_rewritten(connection, queries, rewriting, columns):
            return None
        are_legacy = form == "legacy"
        found = queries.compose("condition_and_objects")
        rewritten = _rewrite(rewriting, columns, "production" if are_legacy else "legacy")
        query = queries.compose(
            "rows_that_change",
            has_form=queries.row_has_form(form),
            condition_and_objects=found,
            of_rewritten_row=statement("of_rewritten_row", condition_and_objects=found, columns_rewritten=rewritten),
            found_in_legacy=identifiers("as_it_is" if are_legacy else "rewritten"),
            found_later=identifiers("rewritten" if are_legacy else "as_it_is"),
        )
        row = fetch_one(connection, query, queries.parameters(**other_parameters(rewriting)))
    return _Change(**row) if row["example"] is not None else None


def _reads_rewritten(connection: Connection, queries: EntryQueries, rewriting: EntryQueries, columns: Columns) -> bool:
    """Return whether SQL of the plan names a column that is rewritten, or one that is generated from others."""
    left = [name for name in columns if name not in rewriting.entries.written_columns and columns[name] is None]
    query = queries.compose(
        "read_without_columns",
        condition_and_objects=queries.compose("condition_and_objects"),
        columns_left=_COMMA.join([_read(name) for name in (*left, "tableoid")]),
    )
    asked = ask(connection, query, queries.parameters())
    if isinstance(asked, errors.UndefinedColumn | errors.UndefinedTable):
        return True
    if isinstance(asked, errors.Error):
        raise asked
    return False


def _rewrite(rewriting: EntryQueries, columns: Columns, to: Form) -> sql.Composable:
    """Return the select list, and what it selects from, of a row in its other form, generated columns included."""
    values = simulate_columns(rewriting.entries, rewriting.found, to)
    own = [sql.SQL("{} as {}").format(values[name], identifiers(name)) for name in values]
    kept = [_read(name) for name, expression in columns.items() if expression is None and name not in values]
    generated = [
        _read(name) if expression is None else sql.SQL("({}) as {}").format(literal(expression), identifiers(name))
        for name, expression in columns.items()
    ]
    inner = sql.SQL("select {}").format(_COMMA.join([*own, *kept, _read("tableoid")]))
    outer = _COMMA.join([*generated, _read("tableoid")])
    return rename_parameters(sql.SQL("{} from ({}) as e").format(outer, inner))


def _read(column: str) -> sql.Composable:
    return sql.SQL("e.{}").format(identifiers(column))
