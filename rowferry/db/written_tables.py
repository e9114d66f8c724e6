"""The SQL that inserts or updates rows of a table by its key, their values given as texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import psycopg
from psycopg import sql
from psycopg.adapt import PyFormat, Transformer

from rowferry.db.connection import Connection, identifiers, literal
from rowferry.db.description import ColumnDescription, describe_columns, split_table
from rowferry.db.statements import statement
from rowferry.errors import MigrationFault, RowRefused

_COMMA = sql.SQL(", ")


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table that rows are written into."""

    name: str
    """`table` or `schema.table`, as in a plan."""
    keys: Sequence[str]
    """The columns of a unique index or constraint."""
    columns: Sequence[str]
    """Others that are written."""
    found: Mapping[str, ColumnDescription]

    @classmethod
    def of(cls, connection: Connection, name: str, keys: Sequence[str], columns: Sequence[str]) -> "WrittenTable":
        """Raise MigrationFault where the table or one of the columns does not exist, or this role may not write it."""
        wanted = [*keys, *columns]
        found = describe_columns(connection, name, wanted) or {}
        for column in wanted:
            if column not in found:
                raise MigrationFault(f"There is no column {column} of a table {name}; create it, or correct the plan.")
            if not found[column].rights >= {"select", "insert", *(["update"] if column in columns else [])}:
                remedy = "grant it select, insert and update, as `rowferry init --grants` does"
                raise MigrationFault(f"The role of the workers may not write {name}.{column}; {remedy}.")
        return cls(name, keys, columns, found)

    def compose_upsert(self) -> sql.Composed:
        """Return the statement that inserts or updates rows; its parameters are `text_0`, …: arrays of texts."""
        action: sql.Composable = sql.SQL("nothing")
        if self.columns:
            assignments = (sql.SQL("{0} = excluded.{0}").format(identifiers(each)) for each in self.columns)
            action = statement(
                "update_excluded",
                assignments=_COMMA.join(assignments),
                present=self._list_texts("t"),
                excluded=self._list_texts("excluded"),
            )
        return statement(
            "upsert_rows",
            **self._compose_rows(),
            columns=_COMMA.join(map(identifiers, (*self.keys, *self.columns))),
            given=_COMMA.join(self._name(number, "r") for number in self._numbers),
            keys=_COMMA.join(map(identifiers, self.keys)),
            conflict_action=action,
            written_keys=_COMMA.join(sql.SQL("t.{}").format(identifiers(each)) for each in self.keys),
        )

    def compose_find(self, *, equal: bool = False, lock: bool = False) -> sql.Composed:
        """Return the query of the numbers of rows that are there; it has the same parameters.

        `equal`: only of rows that hold the values; `lock`: only of rows that no other session has locked.
        """
        same_values: sql.Composable = sql.SQL("true")
        if equal and self.columns:
            given = _COMMA.join(
                sql.SQL("{}::text").format(self._name(number, "r")) for number in self._numbers[len(self.keys) :]
            )
            same_values = sql.SQL("row({}) is not distinct from row({})").format(self._list_texts("t"), given)
        return statement(
            "find_upserted",
            **self._compose_rows(),
            same_values=same_values,
            row_lock=sql.SQL("for no key update of t skip locked" if lock else ""),
        )

    def write_texts(self, connection: Connection, rows: Sequence[Sequence[Any]]) -> dict[str, list[str | None]]:
        """Return the values of rows as the parameters of these statements. Raises RowRefused as the function does."""
        return write_texts(connection, [self.found[name] for name in (*self.keys, *self.columns)], rows)

    @property
    def _numbers(self) -> range:
        return range(len(self.keys) + len(self.columns))

    def _compose_rows(self) -> dict[str, sql.Composable]:
        """Return the parts that both have: the rows from their texts, and how one is told."""
        types = [self.found[name].type for name in (*self.keys, *self.columns)]
        values = (
            sql.SQL("{}::{} as {}").format(self._name(number, "w"), literal(types[number]), self._name(number))
            for number in self._numbers
        )
        same = (sql.SQL("t.{} = {}").format(identifiers(k), self._name(n, "r")) for n, k in enumerate(self.keys))
        return {
            "table": identifiers(*split_table(self.name)),
            "values": _COMMA.join(values),
            "texts": _COMMA.join(sql.SQL("{}::text[]").format(sql.Placeholder(f"text_{n}")) for n in self._numbers),
            "names": _COMMA.join(map(self._name, self._numbers)),
            "key_order": _COMMA.join(self._name(number, "r") for number in range(len(self.keys))),
            "same_keys": sql.SQL(" and ").join(same),
        }

    def _name(self, number: int, *table: str) -> sql.Identifier:
        return sql.Identifier(*table, f"value_{number}")

    def _list_texts(self, table: str) -> sql.Composed:
        """Return the texts of the columns: not every type has an equality, json for instance."""
        return _COMMA.join(sql.SQL("{}::text").format(identifiers(table, each)) for each in self.columns)


def write_texts(
    connection: Connection, columns: Sequence[ColumnDescription], rows: Sequence[Sequence[Any]]
) -> dict[str, list[str | None]]:
    """Return the values of rows as parameters `text_0`, …: an array of texts for each column.

    A dictionary, or a list for a column without an array, is written as JSON, and bytes for a column of text in
    hexadecimal. Raises RowRefused where a value cannot be written.
    """
    transformer = cast("Any", Transformer(connection))
    return {
        f"text_{number}": [_write_text(transformer, row[number], column) for row in rows]
        for number, column in enumerate(columns)
    }


def _write_text(transformer: Any, value: Any, column: ColumnDescription) -> str | None:
    if value is None:
        return None
    try:
        if isinstance(value, str):
            value.encode()  # half of a surrogate pair has no place in a database
            return value
        if type(value) is int:
            return str(value)
        if isinstance(value, bytes) and column.category == "S":
            return value.hex()
        if isinstance(value, dict) or (isinstance(value, list | tuple) and column.category != "A"):
            return msgspec.json.encode(value).decode()
        return bytes(transformer.get_dumper(value, PyFormat.TEXT).dump(value) or b"").decode()
    except (TypeError, ValueError, RecursionError, psycopg.Error) as error:
        raise RowRefused(
            f"a value of the type {type(cast('Any', value)).__name__} cannot be written to {column.name}"
        ) from error
