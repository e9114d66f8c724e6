"""Reads a plan from a TOML file or from the database's jsonb, and says in one sentence what is wrong with it."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import inspect

from rowferry.errors import PlanError
from rowferry.formatting import find_nearest, suggest
from rowferry.plan import Plan

_WRITE = {
    "str": "text in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": 'a table such as { name = "value" }',
}
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""A NUL in JSON, not a backslash before the characters u0000."""
_STATES = (
    "write columns with two values each, the legacy one and the production one, such as "
    '{ service_name = ["amazon", "r2"] }'
)
_BOUND = {">": "above", ">=": "of at least", "<=": "of at most", "<": "below"}


def read_plan(path: Path) -> Plan:
    """Return the plan in a TOML file. Raises PlanError, one sentence, for anything that is wrong with it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PlanError(
            f"There is no plan at {path}: write one (see `rowferry plan --discover` and `rowferry plan --example`) or "
            "name another with --plan."
        ) from None
    except OSError as error:
        raise PlanError(f"The plan {path} cannot be read ({error.strerror}): name another file with --plan.") from error
    except UnicodeDecodeError as error:
        raise PlanError(f"The plan {path} cannot be read ({error}): save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"The plan {path} is not valid TOML: {error}; correct that place, texts in quotes.") from error
    _refuse_missing_prefixes(document, path)
    return parse_plan(document, str(path))


def _refuse_missing_prefixes(document: dict[str, Any], path: Path) -> None:
    """Raise PlanError where a `key` is named without its prefixes: an empty one is a choice, and means every text."""
    entries = document.get("entries")
    for number, each in enumerate(cast("list[Any]", entries) if isinstance(entries, list) else []):
        known = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        for name in ("from", "to"):
            if "key" in known and name not in known:
                raise PlanError(f"In the plan {path}, [[entries]] number {number + 1} lacks the key `{name}`.")


def parse_plan(document: dict[str, Any], source: str) -> Plan:
    """Return the plan that a document (the file's, or the database's jsonb) describes. Raises PlanError."""
    if NUL.search(msgspec.json.encode(document)):
        raise PlanError(
            f"In the plan {source}, a string contains a NUL character, which PostgreSQL cannot store: remove it."
        )
    try:
        return msgspec.convert(document, Plan)
    except msgspec.ValidationError as error:
        raise PlanError(f"In the plan {source}, {explain(str(error))}.") from error
    except PlanError as error:
        raise PlanError(f"In the plan {source}, {error}.") from error


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain dicts and lists, for jsonb; `parse_plan` reads it back. Holds no secret."""
    return msgspec.to_builtins(plan)


def explain(message: str) -> str:
    """Turn msgspec's "Expected `str`, got `int` - at `$.legacy.bucket`" into a sentence about the TOML file."""
    fault, _, where = message.partition(" - at ")
    place = where.strip("`").removeprefix("$").lstrip(".")
    if found := re.match(r"Object contains unknown field `(.+)`", fault):
        near = find_nearest(found[1], _list_keys(place))
        write = f"write `{near}`; " if near else ""
        there = "`rowferry plan --example` shows those that there are"
        return f"{_table(place)} has an unknown key `{found[1]}`: {write}{there}"
    if found := re.match(r"Object missing required field `(.+)`", fault):
        return f"{_table(place)} lacks the key `{found[1]}`"
    if place in {"entries", "objects"} and "array" in fault:
        several = "tables" if place == "entries" else "prefixes"
        return f"[{place}] needs two brackets: write [[{place}]], since a plan may name several {several}"
    return _explain_value(fault, place)


def _explain_value(fault: str, place: str) -> str:
    """Return what is wrong with the value at a place."""
    if found := re.match(r"(entries\[\d+\])\.moved\b", place):
        return f"`moved` of {_table(found[1])} is wrong: {_STATES}"
    table, _, key = place.rpartition(".")
    named = f"`{key}` of {_table(table)}" if table.startswith(("entries[", "objects[")) else f"`{place}`"
    if found := re.match(r"Invalid enum value '?(.*?)'?$", fault):
        table_too = ', or a table such as { team = "images" }' if place == "production.tags" else ""
        allowed = [*_allowed_values(place)]
        near = suggest(found[1], (value.strip('"') for value in allowed))
        return f'{named} is "{found[1]}"{near}: write one of {", ".join(allowed)}{table_too}'
    if (found := re.match(r"Expected `([^`]+)`(?: ([<>]=?) (\d+))?", fault)) and (kinds := _name_types(found[1])):
        bound = f" {_BOUND[found[2]]} {found[3]}" if found[2] else ""
        return f"{named} is wrong: write {kinds}{bound}"
    return f"{named} is wrong: {fault[0].lower()}{fault[1:]}" if place else fault


def _table(place: str) -> str:
    if found := re.fullmatch(r"(entries|objects)\[(\d+)\]", place):
        return f"[[{found[1]}]] number {int(found[2]) + 1}"
    return f"[{place}]" if place else "the file"


def _name_types(types: str) -> str:
    """Return what to write for msgspec's `int | null`; empty where it is no plain value."""
    return " or ".join(_WRITE.get(name, "") for name in types.split(" | ") if name != "null")


def _allowed_values(place: str) -> Iterator[str]:
    """Yield, in quotes, the values that the field at `legacy.addressing` or `entries[0].key` may have."""
    found = _find_type(place)
    for kind in getattr(found, "types", (found,)):
        yield from (f'"{value}"' for value in getattr(kind, "values", ()))


def _list_keys(place: str) -> list[str]:
    """Return the keys that the table at a place may have; none where the plan does not say, as for a queue's own."""
    struct = _struct_of(_find_type(place))
    return [*_fields(struct)] if isinstance(struct, inspect.StructType) else []


def _find_type(place: str) -> Any:
    """Return what the plan may have at `legacy.addressing` or `entries[0].key`; None below what has no fixed keys."""
    found: Any = inspect.type_info(Plan)
    for step in re.findall(r"\w+|\[\d+\]", place):
        if step[0] == "[":
            found = found.item_type
        else:
            struct = _struct_of(found)
            found = _fields(struct).get(step) if isinstance(struct, inspect.StructType) else None
    return found


def _struct_of(found: Any) -> Any:
    """Return the struct, of a type that may be a struct or null; the type itself where it is neither."""
    return next((kind for kind in getattr(found, "types", ()) if isinstance(kind, inspect.StructType)), found)


def _fields(struct: inspect.StructType) -> dict[str, inspect.Type]:
    return {field.encode_name: field.type for field in struct.fields}
