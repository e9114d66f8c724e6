"""Queries over a user's table: the identifiers and parameters of one [[entries]] filled in."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from psycopg import sql

from rowferry.batch import Entry
from rowferry.db import forms
from rowferry.db.connection import Connection, identifiers, literal
from rowferry.db.description import Description, describe, split_table
from rowferry.db.statements import own_queries
from rowferry.errors import MigrationFault
from rowferry.keys import Form, legacy_is_finer, prefix_of, production_is_finer
from rowferry.plan import Entries

_HAS_MIN_AND_MAX = re.compile(
    r"(smallint|integer|bigint|oid|real|double precision|numeric|money|date|time|timestamp|interval|text"
    r"|character varying|inet)(\(.*\))?( with(out)? time zone)?"
)
_COMMA = sql.SQL(", ")


class EntryQueries:
    """The named queries over the table of one [[entries]]."""

    def __init__(self, entries: Entries, found: Description) -> None:
        """Fill in what all of them need; `found` has all columns of the plan."""
        self.entries = entries
        self.found = found
        table = split_table(entries.table)
        # A bare name could be that of one of our CTEs.
        whole_name = (found.schema_name, *table) if found.schema_name and len(table) == 1 else table
        text, objects = forms.read_text(entries, found), forms.read_objects(entries)
        self._parts: dict[str, sql.Composable] = {
            "table": identifiers(*whole_name),
            "text": text,
            "objects": objects,
            "object_columns": sql.SQL("{} as text, {} as objects").format(text, objects),
            "legacy_objects": forms.list_objects(entries, "legacy"),
            "production_objects": forms.list_objects(entries, "production"),
            # On a line of its own, the bracket is no part of a comment that ends the condition.
            "where": literal(f"({entries.where}\n)" if entries.where else "true"),
            "is_legacy": forms.has_form(entries, found, "legacy"),
            "is_production": forms.has_form(entries, found, "production"),
            "changed": identifiers(entries.changed or entries.key),
            "is_legacy_row": forms.row_has_form(entries, found, "legacy"),
            "is_production_row": forms.row_has_form(entries, found, "production"),
            "required_keys": forms.compute_keys(entries.objects),
        } | self._compose_ids()
        self._values = {
            "legacy_prefix": prefix_of(entries, "legacy"),
            "production_prefix": prefix_of(entries, "production"),
            "production_is_finer": production_is_finer(entries),
            "legacy_is_finer": legacy_is_finer(entries),
            "legacy_object": entries.legacy_object_prefix,
            "production_object": entries.production_object_prefix,
            **_name_states(entries, "legacy"),
            **_name_states(entries, "production"),
        }

    @property
    def id_type(self) -> str:
        """The types of the id's columns, for messages."""
        return ", ".join(each or "text" for each in self.found.id_types)

    def _compose_ids(self) -> dict[str, sql.Composable]:
        """Return what tells ids: of one column its own value, of several a row, as text a JSON array of texts."""
        columns = [sql.SQL("e.{}").format(identifiers(each)) for each in self.entries.ids]
        texts = [sql.SQL("{}::text").format(each) for each in columns]
        if len(columns) == 1:
            value, id_text, id_type = columns[0], texts[0], self.found.id_types[0] or "text"
            first_id, last_id = _outermost_id(id_type, "first"), _outermost_id(id_type, "last")
            id_columns = sql.SQL("{} as id").format(value)
        else:
            value = sql.SQL("row({})").format(_COMMA.join(columns))
            id_text = sql.SQL("jsonb_build_array({})::text").format(_COMMA.join(texts))
            first_id = sql.SQL("(array_agg(f.id_text order by f.position))[1]")
            last_id = sql.SQL("(array_agg(f.id_text order by f.position desc))[1]")
            id_columns = sql.SQL("{} as id, {} as id_text").format(value, id_text)
        bounds = {
            "first": sql.SQL("%(first)s"),
            "last": sql.SQL("%(last)s"),
            "first_wanted": sql.SQL("%(first_wanted)s"),
            "last_wanted": sql.SQL("%(last_wanted)s"),
            "id_wanted": sql.SQL("wanted.rowferry_id"),
            "id_held": sql.SQL("held.rowferry_id"),
            "id_observed": sql.SQL("w.rowferry_id"),
            "first_of_batch": sql.SQL("(q.payload ->> 'first')"),
            "last_of_batch": sql.SQL("(q.payload ->> 'last')"),
        }
        composed = {name: self._read_id(text) for name, text in bounds.items()}
        as_value = sql.SQL("{}" if len(columns) == 1 else "row({})")
        waiting = {f"{end}_waiting": as_value.format(composed[f"{end}_of_batch"]) for end in ("first", "last")}
        return {
            **composed,
            **waiting,
            "columns": _COMMA.join(columns),
            "id_text": id_text,
            "id_value": value,
            "id_columns": id_columns,
            "first_id": first_id,
            "last_id": last_id,
        }

    def _read_id(self, text: sql.Composable) -> sql.Composable:
        """Return the values of the id's columns from its text."""
        types = [each or "text" for each in self.found.id_types]
        if len(types) == 1:
            return sql.SQL("{}::{}").format(text, literal(types[0]))
        # Rows compare only values of one collation.
        collated = [
            literal(each if collation is None else f"{each} collate {collation}")
            for each, collation in zip(types, self.found.id_collations, strict=True)
        ]
        values = [
            sql.SQL("({}::jsonb ->> {})::{}").format(text, literal(str(number)), each)
            for number, each in enumerate(collated)
        ]
        return _COMMA.join(values)

    @classmethod
    def of(cls, connection: Connection, entries: Entries) -> "EntryQueries":
        """Raise MigrationFault when the table or one of its columns does not exist."""
        found = describe(connection, entries)
        if found.table_number is None:
            raise MigrationFault(f"There is no table {entries.table} in this database; correct `table` in the plan.")
        columns = (*zip(entries.ids, found.id_types, strict=True), (entries.key, found.key_type))
        for column, kind in (*columns, *zip(entries.moved, found.state_types, strict=True)):
            if kind is None:
                raise MigrationFault(f"Table {entries.table} has no column {column}; correct the plan.")
        return cls(entries, found)

    def check(self, connection: Connection, *, update: bool) -> None:
        """Raise MigrationFault if the table has become unfit for the queries, or this role may not use it.

        `update`: for writing as well.
        """
        entries = self.entries
        now = EntryQueries.of(connection, entries)
        found = now.found
        if now.id_type != self.id_type:
            change = f"Column {entries.id_words} of {entries.table} was of type {self.id_type} and is {now.id_type} now"
            raise MigrationFault(f"{change}; change it back, or delete the batches that wait and enqueue again.")
        if not fits(entries, found):
            change = f"Column {entries.key} of {entries.table} is {found.key_type}, not {name_kind(entries)}"
            raise MigrationFault(f"{change}; change it back, or correct the plan.")
        if found.state_types != self.found.state_types:
            change = f"The columns of `moved` of {entries.label} have other types than before"
            raise MigrationFault(f"{change}; change them back, or correct the plan.")
        if not (found.may_select and (found.may_update or not update)):
            right = "update" if found.may_select else "read"
            remedy = "grant it that, as `rowferry init --grants` does"
            raise MigrationFault(f"The role of the workers may not {right} {entries.label}; {remedy}.")

    def compose(self, name: str, **more: sql.Composable) -> sql.Composed:
        """Return the named query over this table."""
        return own_queries()[name].format(**self._parts, **more)

    def compose_update(self, to: Form, *, skip_locked: bool) -> sql.Composed:
        """Return the statement that gives rows this form."""
        same: dict[str, sql.Composable] = {
            f"same_objects_{row}": sql.SQL("true")
            if self.entries.objects is None
            else sql.SQL("{} = {}::jsonb").format(self._parts["objects"], sql.SQL(f"{row}.rowferry_objects"))
            for row in ("wanted", "held")
        }
        return self.compose(
            "update_rows",
            assignments=forms.assign(self.entries, self.found, to, sql.SQL("held.rowferry_new")),
            origin=self.has_form("legacy" if to == "production" else "production"),
            target=self.has_form(to),
            skip_locked=sql.SQL("skip locked" if skip_locked else ""),
            **same,
        )

    def has_form(self, form: Form) -> sql.Composable:
        """Return the condition that an entry has this form."""
        return self._parts[f"is_{form}"]

    def has_form_since(self, form: Form, since: str | None) -> sql.Composable:
        """Return the same; where `since` is given, it is a parameter, and the entry has changed then or later."""
        if since is None:
            return self.has_form(form)
        return sql.SQL("({} and {})").format(self.has_form(form), forms.has_changed(self.entries, self.found))

    def row_has_form(self, form: Form) -> sql.Composable:
        """Return the condition that a row has this form, whatever objects it has."""
        return self._parts[f"is_{form}_row"]

    def parameters(self, **more: Any) -> dict[str, Any]:
        """Return the parameters of the conditions, and those of the query itself."""
        return {**self._values, **more}


def to_entries(rows: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Return the entries of the rows of a query that selects `id`, `key` and `objects`."""
    return [
        Entry(row["id"], row["key"])
        if row["objects"] is None
        else Entry(row["id"], row["key"], tuple(row["objects"][0]), tuple(row["objects"][1]))
        for row in rows
    ]


def write_objects(entry: Entry) -> str:
    """Return the computed objects of an entry as they were read, as JSON."""
    return msgspec.json.encode((entry.objects, entry.optional)).decode()


def fits(entries: Entries, found: Description) -> bool:
    """Return whether the key column is of a type that the plan can mean."""
    if entries.path is not None:
        return found.key_kind != "other"
    return found.key_kind == "text" or not entries.has_two_texts


def name_kind(entries: Entries) -> str:
    """Return the types that fit, for messages."""
    return "text" if entries.path is None else "jsonb, json, text or an array of texts"


def _name_states(entries: Entries, form: Form) -> dict[str, str]:
    """Return the values of the columns of `moved` that tell a form, as PostgreSQL reads them."""
    values = [pair[0 if form == "legacy" else 1] for pair in entries.moved.values()]
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    return {f"{form}_state_{number}": text for number, text in enumerate(texts)}


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
