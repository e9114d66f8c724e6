"""What PostgreSQL's catalogue says about the table and columns of entries."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from psycopg import sql

from rowferry.db.connection import Connection, fetch_one
from rowferry.db.statements import statement
from rowferry.plan import Entries

_NAME_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')

KeyKind = Literal["text", "json", "jsonb", "array", "other"]
"""What the key column is: text of any kind, a document, an array of texts, or something else."""

Rows = Literal["all", "some", "none"]
"""The rows that policies give a role; a condition other than `true` gives some."""

TimeKind = Literal["timestamptz", "timestamp", "date", "epoch", "other"]
"""What the column of `changed` is: a time of PostgreSQL, a number that counts since 1970, or something else."""


@dataclass(frozen=True, slots=True)
class Description:
    """What the catalogue says; of columns, only those that the plan names."""

    table_number: int | None
    """The table's oid; None when there is no such table."""
    schema_name: str | None
    kind: str | None
    """As pg_class.relkind has it: `r` and `p` are tables."""
    id_types: Sequence[str | None]
    """As format_type() writes them, quoted where needed; None where there is no such column."""
    id_collations: Sequence[str | None]
    """Of the columns that have one, quoted."""
    key_type: str | None
    key_base_type: str | None
    """The same, but of a domain the type that it is made of."""
    key_kind: KeyKind
    can_try_input: bool
    """Whether the server can be asked if a text is a document: PostgreSQL 16 and later."""
    state_types: Sequence[str | None]
    """Of the columns of `moved`, in the order of the plan; without modifiers, of a domain the type it is made of."""
    changed_type: str | None
    changed_kind: TimeKind
    id_not_null: bool
    id_unique: bool
    """Whether a unique index covers the columns of the id, or some of them."""
    id_unique_by_partition: bool
    """Whether the id is unique together with the columns that the table is partitioned by."""
    id_in_order: bool
    """Whether an index begins with the columns of the id, in the order of the plan."""
    id_is_generated: bool
    generated: Sequence[str]
    """The columns to be rewritten that are generated from others."""
    has_children: bool
    """Whether other tables inherit from it; partitions do not count."""
    has_update_rule: bool
    ancestors: Sequence[int]
    """The oids of the tables that it is a partition of, itself included."""
    may_select: bool
    may_update: bool
    rows_to_read: Rows
    """The rows that row-level security shows this role."""
    rows_to_update: Rows
    """Of these, the rows that it lets this role update."""

    @property
    def missing(self) -> bool:
        """Whether the table lacks a column that queries need."""
        return None in {*self.id_types, self.key_type, *self.state_types}

    def lacks_name(self, entries: Entries) -> bool:
        """Return whether the plan names a table or a column that is not there."""
        return self.missing or (entries.changed is not None and self.changed_type is None)


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """What the catalogue says of one column."""

    name: str
    type: str
    """As format_type() writes it, without a modifier."""
    category: str
    """As pg_type.typcategory has it: `N` are numbers, `S` texts, `A` arrays."""
    rights: frozenset[str]
    """What this role may do with it: `select`, `insert`, `update`."""


def split_table(name: str) -> tuple[str, ...]:
    """Return the parts of `schema.table` or `"a.b".table`, exactly as written: case is not folded."""
    return tuple(quoted.replace('""', '"') or plain for quoted, plain in _NAME_PART.findall(name))


def describe(connection: Connection, entries: Entries) -> Description:
    parameters = {
        "table": sql.Identifier(*split_table(entries.table)).as_string(connection),
        "ids": list(entries.ids),
        "key": entries.key,
        "states": list(entries.moved),
        "changed": entries.changed,
        "written": list(entries.written_columns),
        "columns": list(entries.columns),
    }
    return Description(**fetch_one(connection, statement("describe_entries"), parameters))


def describe_columns(connection: Connection, table: str, columns: Iterable[str]) -> dict[str, ColumnDescription] | None:
    """Return what the catalogue says of some columns, by name, without those that are not there; None: no such table.

    Raises InsufficientPrivilege where this role may not use the table's schema.
    """
    name = sql.Identifier(*split_table(table)).as_string(connection)
    rows = connection.execute(statement("describe_columns"), {"table": name, "columns": [*columns]}).fetchall()
    if not all(row["is_table"] for row in rows):
        return None
    found = [(row["name"], row["type"], row["category"], frozenset(row["rights"])) for row in rows if row["type"]]
    return {each[0]: ColumnDescription(*each) for each in found}
