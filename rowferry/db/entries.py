"""Queries over a user's table: the identifiers and parameters of one [[entries]] filled in."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from psycopg import sql

from rowferry.batch import Entry
from rowferry.db import forms
from rowferry.db.connection import Connection, identifiers, literal
from rowferry.db.description import Description, describe, split_table
from rowferry.db.ids import IdQueries
from rowferry.db.row_security import REMEDY, find_withheld
from rowferry.db.statements import own_queries
from rowferry.errors import MigrationFault
from rowferry.keys import (
    SIGNED,
    Form,
    is_finer,
    leaves_signed,
    prefix_of,
    write_url_pattern,
)
from rowferry.plan import Entries
from rowferry.urls import ENDS, NAMES_SOMETHING


class EntryQueries:
    """The named queries over the table of one [[entries]]."""

    def __init__(self, entries: Entries, found: Description) -> None:
        """Fill in what all of them need; `found` has all columns of the plan."""
        self.entries = entries
        self.found = found
        self._ids = IdQueries(entries, found)
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
            "condition": literal(f"({entries.where}\n)" if entries.where else "true"),
            "where": self._compose_where(),
            "is_legacy": forms.has_form(entries, found, "legacy"),
            "is_production": forms.has_form(entries, found, "production"),
            "changed": identifiers(entries.changed or entries.key),
            "is_legacy_row": forms.row_has_form(entries, found, "legacy"),
            "is_production_row": forms.row_has_form(entries, found, "production"),
            "legacy_texts": forms.list_objects_of_text(entries, "legacy"),
            "required_keys": forms.compute_needed(entries),
            "optional_keys": forms.compute_keys(entries.optional),
        } | self._ids.compose()
        self._values = {
            "legacy_prefix": prefix_of(entries, "legacy"),
            "production_prefix": prefix_of(entries, "production"),
            "production_is_finer": is_finer(entries, "production"),
            "legacy_is_finer": is_finer(entries, "legacy"),
            "leaves_signed": leaves_signed(entries),
            "signed": SIGNED,
            "url_pattern": write_url_pattern(entries) if entries.within else "",
            "url_ends": ENDS,
            "url_names_something": NAMES_SOMETHING,
            "legacy_object": entries.legacy_object_prefix,
            "production_object": entries.production_object_prefix,
            **_name_states(entries, "legacy"),
            **_name_states(entries, "production"),
        }

    def _compose_where(self) -> sql.Composable:
        """Return the condition of the plan; where ids may be null, no row with such an id is an entry."""
        condition = literal(f"({self.entries.where}\n)" if self.entries.where else "true")
        if self.found.id_not_null:
            return condition
        columns = sql.SQL(", ").join(identifiers("e", name) for name in self.entries.ids)
        return sql.SQL("({} and row({}) is not null)").format(condition, columns)

    @property
    def id_type(self) -> str:
        """The types of the id's columns, for messages."""
        return self._ids.type

    def compose_bound(self, name: Literal["is_from", "is_until"], values: Sequence[str]) -> sql.Composable:
        """Return the condition that an id is not before, or not after, another; `values`: of its first columns."""
        return self._ids.compose_bound(name, values)

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
        for updates in (False, True) if update else (False,):
            withheld = find_withheld(entries, found, update=updates)
            if withheld is not None and not withheld.is_meant:
                raise MigrationFault(f"{withheld.words[0].upper()}{withheld.words[1:]}; {REMEDY}.")

    def compose(self, name: str, **more: sql.Composable) -> sql.Composed:
        """Return the named query over this table."""
        return own_queries()[name].format(**self._parts, **more)

    def compose_lock(self, to: Form, *, skip_locked: bool) -> sql.Composed:
        """Return the statement that locks the rows which may be given this form."""
        skip = sql.SQL("skip locked" if skip_locked else "")
        return self.compose("lock_rows", skip_locked=skip, **self._compose_guard(to))

    def compose_update(self, to: Form) -> sql.Composed:
        """Return the statement that gives locked rows this form."""
        assignments = forms.assign(self.entries, self.found, to, sql.SQL('rowferry_wanted."rowferry: new"'))
        return self.compose(
            "update_rows", assignments=assignments, target=self.row_has_form(to), **self._compose_guard(to)
        )

    def compose_values(
        self, name: Literal["update_values", "find_different"], form: Form, columns: Mapping[str, str]
    ) -> sql.Composed:
        """Return the statement that gives locked rows of a form other values, or finds those that hold others.

        `columns`: their types by their names.

        Its parameters are those of `compose_lock`, and the values as arrays of texts, `text_0` and so on.
        """
        names = [sql.Identifier(f"rowferry: value {number}") for number in range(len(columns))]
        cast = sql.SQL("rowferry_wanted.{}::{}")
        given = [cast.format(each, literal(kind)) for each, kind in zip(names, columns.values(), strict=True)]
        assigned = zip(columns, given, strict=True)
        comma = sql.SQL(", ")
        return self.compose(
            name,
            texts=comma.join(sql.SQL("{}::text[]").format(sql.Placeholder(f"text_{n}")) for n in range(len(names))),
            names=comma.join(names),
            assignments=comma.join(sql.SQL("{} = {}").format(identifiers(each), value) for each, value in assigned),
            present=comma.join(sql.SQL("{}::text").format(identifiers("e", each)) for each in columns),
            given_texts=comma.join(sql.SQL("{}::text").format(value) for value in given),
            **self._compose_guard("legacy" if form == "production" else "production"),
        )

    def _compose_guard(self, to: Form) -> dict[str, sql.Composable]:
        """Return what must hold of a row beside its id and its text."""
        same_objects: sql.Composable = sql.SQL("true")
        if self.entries.computes_objects:
            same_objects = sql.SQL('{} = rowferry_wanted."rowferry: objects"::jsonb').format(self._parts["objects"])
        return {
            "same_objects": same_objects,
            "origin": self.has_form("legacy" if to == "production" else "production"),
        }

    def has_form(self, form: Form) -> sql.Composable:
        """Return the condition that an entry has this form."""
        return self._parts[f"is_{form}"]

    def meets(self, condition: str | None) -> sql.Composable:
        """Return an SQL condition over the row that a user wrote; None: it is always met."""
        return sql.SQL("true") if condition is None else literal(f"({condition}\n)")

    def has_form_since(self, form: Form, since: str | None) -> sql.Composable:
        """Return the same; where `since` is given, it is a parameter, and the entry has changed then or later."""
        if since is None:
            return self.has_form(form)
        return sql.SQL("({} and {})").format(self.has_form(form), forms.has_changed(self.entries, self.found))

    def read_columns(self, columns: Sequence[str]) -> sql.Composable:
        """Return the expression of an array of these columns' texts; null without any."""
        if not columns:
            return sql.SQL("null::text []")
        texts = [sql.SQL("e.{}::text").format(sql.Identifier(column)) for column in columns]
        return sql.SQL("array[{}]").format(sql.SQL(", ").join(texts))

    def row_has_form(self, form: Form) -> sql.Composable:
        """Return the condition that a row has this form, whatever objects it has."""
        return self._parts[f"is_{form}_row"]

    def parameters(self, **more: Any) -> dict[str, Any]:
        """Return the parameters of the conditions, and those of the query itself."""
        return {**self._values, **more}


def to_entries(rows: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Return the entries of the rows of a query that selects `id`, `key` and `objects`, and perhaps `row_values`."""
    return [
        Entry(row["id"], row["key"])
        if row["objects"] is None and row.get("row_values") is None
        else _to_entry(row["id"], row["key"], row["objects"] or ((), ()), row.get("row_values") or ())
        for row in rows
    ]


def _to_entry(entry_id: str, key: str, objects: Sequence[Sequence[str]], values: Sequence[str | None]) -> Entry:
    return Entry(entry_id, key, tuple(objects[0]), tuple(objects[1]), tuple(values))


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
