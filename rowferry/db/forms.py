"""The SQL that reads and writes the key column of entries, by the forms that the plan can give them.

All parts are over the alias `e` of the user's table; they come from sql/queries/fragments.sql.
"""

from psycopg import sql

from rowferry.db.connection import identifiers, literal
from rowferry.db.description import Description
from rowferry.db.documents import find_places, put_texts
from rowferry.db.statements import statement
from rowferry.keys import Form
from rowferry.plan import Entries

AND = sql.SQL(" and ")
NO_OBJECTS = sql.SQL("null::jsonb")


def read_text(entries: Entries, found: Description) -> sql.Composable:
    """Return what the entry's text is: the column, or the texts of its document by their places."""
    if entries.key_column is None:
        return statement("text_of_id", column=identifiers(entries.key))
    if not entries.has_places:
        return sql.SQL("e.{}::text").format(identifiers(entries.key))
    return statement("texts", places=find_places(entries, found))


def has_form(entries: Entries, found: Description, form: Form) -> sql.Composable:
    """Return the condition that an entry has this form: its text, its states, its objects."""
    condition = row_has_form(entries, found, form)
    if not entries.computes_objects:
        return condition
    return sql.SQL("({} and {})").format(condition, statement("has_objects", required=compute_needed(entries)))


def row_has_form(entries: Entries, found: Description, form: Form) -> sql.Composable:
    """Return the condition that a row has this form, whatever objects it has."""
    conditions = [_text_has_form(entries, found, form)]
    for number, (column, type_name) in enumerate(zip(entries.moved, found.state_types, strict=True)):
        value = sql.Placeholder(f"{form}_state_{number}")
        conditions.append(
            statement("has_state", column=identifiers(column), value=value, type=literal(type_name or "text"))
        )
    return sql.SQL("({})").format(AND.join(conditions))


def has_changed(entries: Entries, found: Description) -> sql.Composable:
    """Return the condition that a row has changed since the parameter `since`, a text of `TimeKind`."""
    column = identifiers(entries.changed or "")
    if found.changed_kind == "epoch":
        return statement("has_changed_epoch", changed=column)
    return statement("has_changed", changed=column, type=literal(found.changed_type or "text"))


def read_objects(entries: Entries) -> sql.Composable:
    """Return the computed objects of an entry, null where the text names them."""
    if not entries.computes_objects:
        return NO_OBJECTS
    required, optional = compute_keys(entries.objects), compute_keys(entries.optional)
    return statement("computed_objects", required=required, optional=optional)


def list_objects(entries: Entries, form: Form) -> sql.Composable:
    """Return the query for the objects of an entry of this form, whose `text` or `objects` were read as `e`."""
    if entries.computes_objects:
        return statement("computed_objects_of_entry")
    return list_objects_of_text(entries, form)


def list_objects_of_text(entries: Entries, form: Form) -> sql.Composable:
    """Return the same for the objects that the text itself names."""
    rest: sql.Composable = sql.SQL("t.rest") if entries.within is None else statement("rest_of_url")
    decoded = rest if entries.encoding == "none" else statement("percent_decoded", rest=rest)
    parts: dict[str, sql.Composable] = {"form": sql.SQL(form), "decoded": decoded}
    if not entries.has_places:
        return statement("object_of_text", **parts)
    return statement("objects_of_document", **parts, has_form=statement(f"is_{form}", text=sql.SQL("p.value")))


def assign(entries: Entries, found: Description, to: Form, new_text: sql.Composable) -> sql.Composable:
    """Return the assignments that give a row the other form; `new_text`: what `map_entry` made of its text."""
    values = _list_new_values(entries, found, to, new_text)
    return sql.SQL(", ").join(sql.SQL("{} = {}").format(identifiers(column), values[column]) for column in values)


def simulate_columns(entries: Entries, found: Description, to: Form) -> dict[str, sql.Composable]:
    """Return the values that the rewritten columns of a row would have in the other form; nothing is written."""
    origin: Form = "legacy" if to == "production" else "production"
    parts = {"origin": sql.SQL(origin), "to": sql.SQL(to), "text": read_text(entries, found)}
    if not entries.has_places:
        new_text = statement("mapped_text", **parts)
    else:
        new_text = statement("mapped_texts", **parts, has_form=statement(f"is_{origin}", text=sql.SQL("p.value")))
    condition = row_has_form(entries, found, origin)
    return {
        column: statement("if_of_form", has_form=condition, value=value, column=identifiers(column))
        for column, value in _list_new_values(entries, found, to, new_text).items()
    }


def _list_new_values(
    entries: Entries, found: Description, to: Form, new_text: sql.Composable
) -> dict[str, sql.Composable]:
    values: dict[str, sql.Composable] = {}
    if entries.has_two_texts:
        values[entries.key] = put_texts(entries, found, new_text) if entries.has_places else new_text
    for number, (column, type_name) in enumerate(zip(entries.moved, found.state_types, strict=True)):
        placeholder = sql.Placeholder(f"{to}_state_{number}")
        values[column] = sql.SQL("{}::{}").format(placeholder, literal(type_name or "text"))
    return values


def _text_has_form(entries: Entries, found: Description, form: Form) -> sql.Composable:
    if not entries.has_places:
        return statement(f"is_{form}", text=read_text(entries, found))
    of_text = statement(f"is_{form}", text=sql.SQL("(p.value #>> array[]::text[])"))
    return statement("any_text", places=find_places(entries, found), has_form=of_text)


def compute_keys(expression: str | None) -> sql.Composable:
    """Return the array of keys that an expression of the plan yields."""
    return statement("computed_keys", expression=literal(expression or "array[]::text[]"))


def compute_needed(entries: Entries) -> sql.Composable:
    """Return the array of keys of which an entry has one at least: of `objects`, or of `optional` where it is alone."""
    return compute_keys(entries.optional if entries.objects is None else entries.objects)
