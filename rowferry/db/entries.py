"""Queries over a user's table: the identifiers and parameters of one [[entries]] filled in."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import msgspec
from psycopg import sql

from rowferry.batch import Entry
from rowferry.db import forms
from rowferry.db.connection import Connection, identifiers, literal
from rowferry.db.description import Description, describe, split_table
from rowferry.db.ids import IdQueries
from rowferry.db.row_security import REMEDY, find_withheld
from rowferry.db.statements import own_queries, statement
from rowferry.errors import MigrationFault
from rowferry.keys import (
    OTHER,
    SIGNED,
    Form,
    is_finer,
    leaves_signed,
    prefix_of,
    write_url_pattern,
)
from rowferry.plan import Entries
from rowferry.urls import ENDS, NAMES_SOMETHING

_COMMA = sql.SQL(", ")
Columns = tuple[tuple[str, str], ...]
"""Columns of a row other than that of its text, with their types."""

Asked = ParamSpec("Asked")


def _once(
    compose: Callable[Concatenate["EntryQueries", Asked], sql.Composed],
) -> Callable[Concatenate["EntryQueries", Asked], bytes]:
    """Compose a statement when it is first asked for: each batch executes it, and it takes as long as to do so."""

    @wraps(compose)
    def find(queries: "EntryQueries", *asked: Asked.args, **named: Asked.kwargs) -> bytes:
        known = (compose.__name__, *asked, *named.values())
        if known not in queries.composed:
            queries.composed[known] = compose(queries, *asked, **named).as_bytes()
        return queries.composed[known]

    return find


class EntryQueries:
    """The named queries over the table of one [[entries]]."""

    def __init__(self, entries: Entries, found: Description) -> None:
        """Fill in what all of them need; `found` has all columns of the plan."""
        self.entries = entries
        self.found = found
        self.ids = IdQueries(entries, found)
        table = split_table(entries.table)
        # A bare name could be that of one of our CTEs.
        whole_name = (found.schema_name, *table) if found.schema_name and len(table) == 1 else table
        text, objects = forms.read_text(entries, found), forms.read_objects(entries)
        self._parts: dict[str, sql.Composable] = {
            "table": identifiers(*whole_name),
            "text": text,
            "objects": objects,
            "object_columns": sql.SQL("{} as text, {} as objects").format(text, objects),
            # On a line of its own, the bracket is no part of a comment that ends the condition.
            "condition": literal(f"({entries.where}\n)" if entries.where else "true"),
            "where": self._compose_where(),
            "is_legacy": forms.has_form(entries, found, "legacy"),
            "is_production": forms.has_form(entries, found, "production"),
            "changed": identifiers(entries.changed or entries.key),
            "is_legacy_row": forms.row_has_form(entries, found, "legacy"),
            "is_production_row": forms.row_has_form(entries, found, "production"),
            "required_keys": forms.compute_needed(entries),
            "optional_keys": forms.compute_keys(entries.optional),
        } | self.ids.compose()
        self.composed: dict[tuple[object, ...], bytes] = {}
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
        if now.ids.type != self.ids.type:
            change = (
                f"Column {entries.id_words} of {entries.table} was of type {self.ids.type} and is {now.ids.type} now"
            )
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
            if withheld is not None:
                raise MigrationFault(f"{withheld[0].upper()}{withheld[1:]}; {REMEDY}.")

    def compose(self, name: str, **more: sql.Composable) -> sql.Composed:
        """Return the named query over this table."""
        return own_queries()[name].format(**self._parts, **more)

    def compose_keys(self, form: Form) -> sql.Composed:
        """Return the query for the keys of the objects of entries of this form."""
        return self.compose("object_keys", has_form=self.has_form(form), listed=forms.list_objects(self.entries, form))

    def names_any(self, form: Form) -> sql.Composed:
        """Return the condition that a row of this form names one of the legacy keys of the parameter `keys`."""
        return self.compose("names_any", listed=forms.list_objects(self.entries, form))

    @_once
    def compose_read(
        self, form: Form, columns: tuple[str, ...] = (), where: str | None = None, *, has_since: bool = False
    ) -> sql.Composed:
        """Return the statement that reads the entries of a form in a range of ids, from `first` to `last`.

        `columns`: others of the row, read as text; `where`: a condition besides; `has_since`: as of `has_form_since`.
        """
        wanted = sql.SQL("({} and {})").format(self.has_form_since(form, has_since=has_since), self.meets(where))
        return self.compose("read_entries", wanted=wanted, row_values=self.read_columns(columns))

    @_once
    def compose_lock(self, to: Form, columns: Columns = (), *, skip_locked: bool) -> sql.Composed:
        """Return the statement that locks the rows which may be given this form, or values of `columns`.

        Its parameters are those of `bind`, and what the rows are to hold as arrays of texts: `text_0`, the text or the
        value of the first column, and so on. A row that it returns `is_equal` where it holds these values.
        """
        is_equal: sql.Composable = sql.SQL("false")
        if columns:
            present = _COMMA.join(sql.SQL("{}::text").format(identifiers("e", name)) for name, _ in columns)
            given = _COMMA.join(sql.SQL("{}::text").format(_read_given(n, kind)) for n, (_, kind) in enumerate(columns))
            is_equal = sql.SQL("row({}) is not distinct from row({})").format(present, given)
        skip = sql.SQL("skip locked" if skip_locked else "")
        return self.compose("lock_rows", skip_locked=skip, is_equal=is_equal, **self._compose_guard(to, columns))

    @_once
    def compose_update(self, to: Form, columns: Columns = ()) -> sql.Composed:
        """Return the statement that gives locked rows this form, or values of `columns`; it has the same parameters."""
        values = [_read_given(number, kind) for number, (_, kind) in enumerate(columns)]
        named = zip(columns, values, strict=True)
        assignments = _COMMA.join(sql.SQL("{} = {}").format(identifiers(name), value) for (name, _), value in named)
        if not columns:
            assignments = forms.assign(self.entries, self.found, to, _read_given(0, "text"))
        is_written = sql.SQL("true") if columns else self.row_has_form(to)
        guard = self._compose_guard(to, columns)
        return self.compose("update_rows", assignments=assignments, is_written=is_written, **guard)

    def _compose_guard(self, to: Form, columns: Columns) -> dict[str, sql.Composable]:
        """Return what is wanted of rows, and the condition that all that was read of them still holds."""
        same_objects: sql.Composable = sql.SQL("true")
        if self.entries.computes_objects:
            same_objects = sql.SQL('{} = rowferry_wanted."rowferry: objects"::jsonb').format(self._parts["objects"])
        numbers = range(len(columns) or 1)
        texts = _COMMA.join(sql.SQL("{}::text[]").format(sql.Placeholder(f"text_{number}")) for number in numbers)
        names = _COMMA.join(sql.Identifier(f"rowferry: value {number}") for number in numbers)
        return {
            "wanted_rows": statement("wanted_rows", texts=texts, names=names),
            "is_as_read": self.compose("is_as_read", same_objects=same_objects, origin=self.has_form(OTHER[to])),
        }

    def has_form(self, form: Form) -> sql.Composable:
        """Return the condition that an entry has this form."""
        return self._parts[f"is_{form}"]

    def meets(self, condition: str | None) -> sql.Composable:
        """Return an SQL condition over the row that a user wrote; None: it is always met."""
        return sql.SQL("true") if condition is None else literal(f"({condition}\n)")

    def has_form_since(self, form: Form, *, has_since: bool) -> sql.Composable:
        """Return the same; with `has_since`, that is a parameter `since`, and the entry has changed then or later."""
        if not has_since:
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

    def bind(self, entries: Sequence[Entry], **more: Any) -> dict[str, Any]:
        """Return what was read of rows, in the order of their ids, as parameters, and those of the query itself."""
        ids, old = [entry.id for entry in entries], [entry.key for entry in entries]
        objects = [_write_objects(entry) for entry in entries] if self.entries.computes_objects else []
        return self.parameters(ids=ids, first=ids[0], last=ids[-1], old=old, objects=objects, **more)


def _read_given(number: int, kind: str) -> sql.Composable:
    """Return a value that a row is to hold, of a type."""
    return sql.SQL("rowferry_wanted.{}::{}").format(sql.Identifier(f"rowferry: value {number}"), literal(kind))


def to_entries(rows: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Return the entries of the rows of a query that selects `id`, `key` and `objects`."""
    return make_entries((row["id"], row["key"], row["objects"], None) for row in rows)


def make_entries(rows: Iterable[tuple[Any, ...]]) -> list[Entry]:
    """Return the entries of the rows of `compose_read`."""
    return [
        Entry(entry_id, key)
        if objects is None and values is None
        else Entry(entry_id, key, *_read_objects(objects), tuple(values or ()))
        for entry_id, key, objects, values in rows
    ]


def _read_objects(objects: Sequence[Sequence[str]] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    required, optional = objects or ((), ())
    return tuple(required), tuple(optional)


def _write_objects(entry: Entry) -> str:
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
