"""The SQL that reads the texts at the path of a document or an array, and puts others in their places.

A *place* is the text of an array of member names and element numbers, as `jsonb_set` takes it.
"""

from functools import reduce

from psycopg import sql

from rowferry.db.connection import identifiers, literal
from rowferry.db.description import Description
from rowferry.db.statements import statement
from rowferry.plan import Entries
from rowferry.plan.path import ANY_ELEMENT, ANY_MEMBER, parse_path


def read_document(entries: Entries, found: Description) -> sql.Composable:
    """Return the column as jsonb; null where it holds no document.

    Below PostgreSQL 16 a text that is no JSON makes the query fail, unless the plan's `where` leaves out its row.
    """
    column = identifiers(entries.key)
    if found.key_kind == "array":
        return statement("document_of_array", column=column)
    if found.key_kind == "jsonb":
        return sql.SQL("e.{}::jsonb").format(column)
    if found.can_try_input:
        return statement("document_of_text", column=column)
    return statement("document_of_entry", column=column, where=literal(f"({entries.where or 'true'}\n)"))


def find_places(entries: Entries, found: Description) -> sql.Composable:
    """Return the query for the places and values that the path leads to."""
    if entries.within is not None:
        return statement("urls_in_text", column=identifiers(entries.key))
    root = statement("root", document=read_document(entries, found))
    return reduce(_take_step, parse_path(entries.path or "$"), root)


def _take_step(places: sql.Composable, step: str) -> sql.Composable:
    if step == ANY_MEMBER:
        return statement("members", places=places)
    if step == ANY_ELEMENT:
        return statement("elements", places=places)
    return statement("child", places=places, **_name_child(step))


def put_texts(entries: Entries, found: Description, texts: sql.Composable) -> sql.Composable:
    """Return the column's value with other texts at their places, all else as it is, in the column's own type."""
    if entries.within is not None:
        return statement("put_urls", column=identifiers(entries.key), texts=texts)
    steps = parse_path(entries.path or "$")
    put = _put(steps, sql.SQL("document.value"), sql.SQL("array[]::text[]"))
    document: sql.Composable = statement("put_texts", document=read_document(entries, found), texts=texts, put=put)
    if found.key_kind == "array":
        document = statement("to_array", document=document)
    kind = "json" if found.key_kind == "json" else found.key_type or "text"
    return sql.SQL("{}::{}").format(document, literal("text" if found.key_kind == "text" else kind))


def _put(steps: tuple[str, ...], value: sql.Composable, place: sql.Composable) -> sql.Composable:
    """Return a value with the texts at the rest of a path replaced; it is built once, whatever their number."""
    if not steps:
        return statement("put_text", value=value, place=place)
    step, rest = steps[0], steps[1:]
    below = literal(f"below_{len(rest)}")
    named: dict[str, sql.Composable] = {}
    if step in {ANY_MEMBER, ANY_ELEMENT}:
        name, taken = ("put_members", "{}.key") if step == ANY_MEMBER else ("put_elements", "({}.number - 1)::text")
        taken_step: sql.Composable = literal(taken.format(f"below_{len(rest)}"))
    else:
        name, named = "put_child", _name_child(step)
        taken_step = sql.SQL("{step}::text").format(**named)
    inner = _put(rest, sql.SQL("{}.value").format(below), sql.SQL("{} || {}").format(place, taken_step))
    return statement(name, value=value, below=below, inner=inner, **named)


def _name_child(step: str) -> dict[str, sql.Composable]:
    """Return the name of a member, or the number of an element, and the type of what has it."""
    if step.startswith("["):
        return {"step": literal(step.strip("[]")), "type": sql.SQL("'array'")}
    return {
        "step": literal(sql.Literal(step.removeprefix(".")).as_string(None) + "::text"),
        "type": sql.SQL("'object'"),
    }
