"""The SQL that reads, compares and writes the ids of entries: of one column its value, of several a row of values."""

from collections.abc import Sequence
from typing import Literal

from psycopg import sql

from rowferry.db.connection import identifiers, literal
from rowferry.db.description import Description
from rowferry.db.statements import statement
from rowferry.plan import Entries

_COMMA = sql.SQL(", ")
_TEXTS: dict[str, sql.SQL] = {
    "first": sql.SQL("%(first)s"),
    "last": sql.SQL("%(last)s"),
    "id_wanted": sql.SQL('rowferry_wanted."rowferry: id"'),
    "id_observed": sql.SQL('w."rowferry: id"'),
    "first_of_batch": sql.SQL("(q.payload ->> 'first')"),
    "last_of_batch": sql.SQL("(q.payload ->> 'last')"),
}
"""Where the queries have an id as text."""


class IdQueries:
    """What tells the ids of one [[entries]]; the text of an id of several columns is a JSON array of texts."""

    def __init__(self, entries: Entries, found: Description) -> None:
        """`found` has all columns of the id."""
        self._columns = [sql.SQL("e.{}").format(identifiers(each)) for each in entries.ids]
        self._types = [each or "text" for each in found.id_types]
        self._collations = found.id_collations
        self._is_partitioned = found.kind == "p"

    @property
    def type(self) -> str:
        """The types of the id's columns, for messages."""
        return ", ".join(self._types)

    def compose(self) -> dict[str, sql.Composable]:
        """Return the parts of queries that name ids."""
        columns = _COMMA.join(self._columns)
        composed: dict[str, sql.Composable] = {name: self._read(text) for name, text in _TEXTS.items()}
        composed |= {"columns": columns, "id_text": self._write(self._columns), "in_range": self._bound_first_column()}
        if len(self._columns) == 1:
            return composed | {
                "id_value": columns,
                "id_columns": sql.SQL("{} as id").format(columns),
                "first_columns": sql.SQL("w.first_id"),
                "last_columns": sql.SQL("w.last_id"),
                "first_waiting": composed["first_of_batch"],
                "last_waiting": composed["last_of_batch"],
                "first_id": self._outermost(["id"]),
                "last_id": self._outermost(["id"], " desc"),
            }
        # No field of an unnamed row can be read.
        names = [f"id_{number}" for number in range(len(self._columns))]
        named = [sql.SQL("{} as {}").format(*each) for each in zip(self._columns, map(identifiers, names), strict=True)]
        nulls = _COMMA.join([sql.NULL] * len(names))
        return composed | {
            "id_value": sql.SQL("row({})").format(columns),
            "id_columns": sql.SQL("row({}) as id, {}").format(columns, _COMMA.join(named)),
            "first_columns": sql.SQL("w.first_id, {}").format(nulls),
            "last_columns": sql.SQL("w.last_id, {}").format(nulls),
            "first_waiting": sql.SQL("row({})").format(composed["first_of_batch"]),
            "last_waiting": sql.SQL("row({})").format(composed["last_of_batch"]),
            "first_id": self._outermost(names),
            "last_id": self._outermost(names, " desc"),
        }

    def compose_bound(self, name: Literal["is_from", "is_until"], values: Sequence[str]) -> sql.Composable:
        """Return the condition that an id is not before, or not after, another; `values`: of its first columns."""
        columns = _COMMA.join(self._columns[: len(values)])
        texts = (literal(sql.Literal(value).as_string(None)) for value in values)
        bound = _COMMA.join(self._cast(text, number) for number, text in enumerate(texts))
        return statement(name, columns=columns, bound=bound)

    def _read(self, text: sql.Composable) -> sql.Composable:
        """Return the values of the id's columns from its text."""
        if len(self._columns) == 1:
            return self._cast(text, 0)
        texts = (sql.SQL("({}::jsonb ->> {})").format(text, literal(str(number))) for number in range(len(self._types)))
        return _COMMA.join(self._cast(each, number) for number, each in enumerate(texts))

    def _bound_first_column(self) -> sql.Composable:
        """Return the condition that the first of several columns is in the range of `first` and `last`.

        Only of a partitioned table: from it the planner knows the partitions, and that looking up each id is cheaper
        than reading them all. It is not for a range of ids, whose index scan might begin by this condition alone.
        """
        if len(self._columns) == 1 or not self._is_partitioned:
            return sql.SQL("true")
        bounds = [self._cast(sql.SQL("({}::jsonb ->> 0)").format(_TEXTS[name]), 0) for name in ("first", "last")]
        return statement("is_between", column=self._columns[0], first=bounds[0], last=bounds[1])

    def _cast(self, text: sql.Composable, number: int) -> sql.Composable:
        """Return the value of a column from its text, in the column's collation."""
        id_type, collation = self._types[number], self._collations[number]
        return sql.SQL("{}::{}").format(text, literal(f"{id_type} collate {collation}" if collation else id_type))

    def _outermost(self, names: Sequence[str], order: Literal["", " desc"] = "") -> sql.Composable:
        """Return the text of the first or last id of a group; only the outermost ids are written as texts."""
        found = "(array_agg(f.{} order by f.position{}))[1]"
        return self._write([sql.SQL(found).format(identifiers(name), literal(order)) for name in names])

    def _write(self, values: Sequence[sql.Composable]) -> sql.Composable:
        """Return the text of an id from its values."""
        texts = [sql.SQL("{}::text").format(each) for each in values]
        return texts[0] if len(texts) == 1 else sql.SQL("jsonb_build_array({})::text").format(_COMMA.join(texts))
