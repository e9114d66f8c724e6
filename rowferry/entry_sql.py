"""The SQL face of entries: identifiers and parameters that the statements over a user's table need."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import sql

from rowferry.database import Connection, fetch_one, identifiers, literal
from rowferry.errors import UserMistake
from rowferry.keys import production_is_finer
from rowferry.plan import Entries
from rowferry.statements import statement

_NAME_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


@dataclass(frozen=True, slots=True)
class Description:
    """What the catalogue knows about the table and columns of entries."""

    has_table: bool
    id_type: str | None
    """As format_type() writes it, quoted where needed; None when there is no such column."""
    key_type: str | None
    key_is_text: bool
    id_not_null: bool
    id_unique: bool
    may_select: bool
    may_update: bool


def split_table(name: str) -> tuple[str, ...]:
    """Return the parts of `schema.table` or `"a.b".table`, exactly as written: case is not folded."""
    return tuple(quoted.replace('""', '"') or plain for quoted, plain in _NAME_PART.findall(name))


def describe(connection: Connection, entries: Entries) -> Description:
    """Look the table and columns of entries up in the catalogue."""
    table = sql.Identifier(*split_table(entries.table)).as_string(connection)
    row = fetch_one(connection, statement("describe_entries"), {"table": table, "id": entries.id, "key": entries.key})
    return Description(**row)


@dataclass(frozen=True, slots=True)
class EntrySql:
    """Fills the statements over one table in; `id_type` is the type of the id column, from `describe`."""

    entries: Entries
    id_type: str

    @classmethod
    def of(cls, connection: Connection, entries: Entries) -> "EntrySql":
        """Return the SQL face of entries. Raises UserMistake when the table or one of its columns does not exist."""
        found = describe(connection, entries)
        if not found.has_table:
            raise UserMistake(f"There is no table {entries.table} in this database; correct `table` in the plan.")
        for column, kind in ((entries.id, found.id_type), (entries.key, found.key_type)):
            if kind is None:
                raise UserMistake(f"Table {entries.table} has no column {column}; correct the plan.")
        return cls(entries, found.id_type or "text")

    def compose(self, name: str, **more: sql.Composable) -> sql.Composed:
        """Return sql/statements/`name`.sql for this table."""
        return statement(
            name,
            table=identifiers(*split_table(self.entries.table)),
            id=identifiers(self.entries.id),
            key=identifiers(self.entries.key),
            id_type=literal(self.id_type),
            sortable_id=self._sortable_id(),
            where=literal(f"({self.entries.where})" if self.entries.where else "true"),
            is_legacy=self.has_form("legacy"),
            is_production=self.has_form("production"),
            **more,
        )

    def has_form(self, form: Literal["legacy", "production"]) -> sql.Composed:
        """Return the condition that an entry's key has this form."""
        return statement(f"is_{form}", key=identifiers(self.entries.key))

    def parameters(self, **more: Any) -> dict[str, Any]:
        """Return the parameters that the conditions need, with those of the statement itself."""
        return {
            "legacy_prefix": self.entries.legacy_prefix,
            "production_prefix": self.entries.production_prefix,
            "production_is_finer": production_is_finer(self.entries),
            **more,
        }

    def _sortable_id(self) -> sql.SQL:
        """Return the id column in a form that min() and max() take: PostgreSQL 14 to 17 have none for uuid."""
        return literal('id::text collate "C"' if self.id_type == "uuid" else "id")
