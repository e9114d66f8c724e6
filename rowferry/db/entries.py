"""Queries over a user's table: the identifiers and parameters of one [[entries]] filled in."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import sql

from rowferry.db.connection import Connection, fetch_one, identifiers, literal
from rowferry.db.statements import own_queries, statement
from rowferry.errors import MigrationFault
from rowferry.keys import production_is_finer
from rowferry.plan import Entries

_HAS_MIN_AND_MAX = re.compile(
    r"(smallint|integer|bigint|oid|real|double precision|numeric|money|date|time|timestamp|interval|text"
    r"|character varying|inet)(\(.*\))?( with(out)? time zone)?"
)
_NAME_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


@dataclass(frozen=True, slots=True)
class Description:
    """What the catalogue says about the table and columns of entries."""

    table_number: int | None
    """The table's oid; None when there is no such table."""
    schema_name: str | None
    kind: str | None
    """As pg_class.relkind has it: `r` and `p` are tables."""
    id_type: str | None
    """As format_type() writes it, quoted where needed; None when there is no such column."""
    key_type: str | None
    key_is_text: bool
    id_not_null: bool
    id_unique: bool
    id_unique_by_partition: bool
    """Whether the id is unique together with the columns that the table is partitioned by."""
    id_is_generated: bool
    key_is_generated: bool
    has_children: bool
    """Whether other tables inherit from it; partitions do not count."""
    has_update_rule: bool
    ancestors: Sequence[int]
    """The oids of the tables that it is a partition of, itself included."""
    key_constraints: Sequence[str]
    """The names and definitions of CHECK constraints and foreign keys that the key column takes part in."""
    may_select: bool
    may_update: bool


def split_table(name: str) -> tuple[str, ...]:
    """Return the parts of `schema.table` or `"a.b".table`, exactly as written: case is not folded."""
    return tuple(quoted.replace('""', '"') or plain for quoted, plain in _NAME_PART.findall(name))


def describe(connection: Connection, entries: Entries) -> Description:
    table = sql.Identifier(*split_table(entries.table)).as_string(connection)
    row = fetch_one(connection, statement("describe_entries"), {"table": table, "id": entries.id, "key": entries.key})
    return Description(**row)


class EntryQueries:
    """The named queries over the table of one [[entries]]."""

    def __init__(self, entries: Entries, id_type: str, schema_name: str | None = None) -> None:
        """Fill in what all of them need.

        `schema_name`: of the table, where the plan does not name it: a bare name could be that of one of our CTEs.
        """
        self.entries = entries
        self.id_type = id_type
        """As `describe` returns it."""
        table = split_table(entries.table)
        key = identifiers(entries.key)
        self._parts: dict[str, sql.Composable] = {
            "table": identifiers(*((schema_name, *table) if schema_name and len(table) == 1 else table)),
            "id": identifiers(entries.id),
            "key": key,
            "id_type": literal(id_type),
            "first_id": _outermost_id(id_type, "first"),
            "last_id": _outermost_id(id_type, "last"),
            # On a line of its own, the bracket is no part of a comment that ends the condition.
            "where": literal(f"({entries.where}\n)" if entries.where else "true"),
            "is_legacy": statement("is_legacy", key=key),
            "is_production": statement("is_production", key=key),
        }
        self._prefixes = {
            "legacy_prefix": entries.legacy_prefix,
            "production_prefix": entries.production_prefix,
            "production_is_finer": production_is_finer(entries),
        }

    @classmethod
    def of(cls, connection: Connection, entries: Entries) -> "EntryQueries":
        """Raise MigrationFault when the table or one of its columns does not exist."""
        found = describe(connection, entries)
        if found.table_number is None:
            raise MigrationFault(f"There is no table {entries.table} in this database; correct `table` in the plan.")
        for column, kind in ((entries.id, found.id_type), (entries.key, found.key_type)):
            if kind is None:
                raise MigrationFault(f"Table {entries.table} has no column {column}; correct the plan.")
        return cls(entries, found.id_type or "text", found.schema_name)

    def check(self, connection: Connection, *, update: bool) -> None:
        """Raise MigrationFault if the table has become unfit for the queries, or this role may not use it.

        `update`: for writing as well.
        """
        entries, found = self.entries, describe(connection, self.entries)
        now = EntryQueries.of(connection, entries)
        if now.id_type != self.id_type:
            change = f"Column {entries.id} of {entries.table} was of type {self.id_type} and is {now.id_type} now"
            raise MigrationFault(f"{change}; change it back, or delete the batches that wait and enqueue again.")
        if not found.key_is_text:
            change = f"Column {entries.key} of {entries.table} is {found.key_type}, not text"
            raise MigrationFault(f"{change}; change it back, or correct the plan.")
        if not (found.may_select and (found.may_update or not update)):
            right = "update" if found.may_select else "read"
            remedy = "grant it that, as `rowferry init --grants` does"
            raise MigrationFault(f"The role of the workers may not {right} {entries.label}; {remedy}.")

    def compose(self, name: str, **more: sql.Composable) -> sql.Composed:
        """Return the named query over this table."""
        return own_queries()[name].format(**self._parts, **more)

    def has_form(self, form: Literal["legacy", "production"]) -> sql.Composable:
        """Return the condition that an entry's key has this form."""
        return self._parts[f"is_{form}"]

    def parameters(self, **more: Any) -> dict[str, Any]:
        """Return the parameters of the conditions, and those of the query itself."""
        return {**self._prefixes, **more}


def _outermost_id(id_type: str, which: Literal["first", "last"]) -> sql.SQL:
    """Return the first or last id of a group, as text, of any type that has an order.

    min() and max() do not exist for every type: below PostgreSQL 18 not for uuid and bytea, and never for bit strings.
    """
    function, order = ("min", "") if which == "first" else ("max", " desc")
    if id_type == "uuid":
        return literal(f'{function}(f.id::text collate "C")')
    if _HAS_MIN_AND_MAX.fullmatch(id_type):
        return literal(f"{function}(f.id)::text")
    return literal(f"(array_agg(f.id::text order by f.position{order}))[1]")
