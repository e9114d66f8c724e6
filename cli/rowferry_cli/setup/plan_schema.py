"""The JSON Schema of the plan file, for editors: from the structs of the plan, with their docstrings."""

import ast
import inspect
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgspec

from rowferry.errors import UsageError
from rowferry.plan import Plan
from rowferry.queue_spec import QueueSpec
from rowferry.queues import find_queue, list_queues

SIDES = ["legacy", "production"]
PREFIXES = ["from", "to"]
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def write_schema() -> str:
    """Return the schema as text, always the same for one version of rowferry."""
    return json.dumps(make_schema(), indent=2, ensure_ascii=False) + "\n"


def make_schema() -> dict[str, Any]:
    """Return the JSON Schema of `rowferry.toml`, with the settings of the queues that are installed here."""
    specs = list(_list_specs())
    settings = [spec.settings for spec in specs]
    schemas, defs = msgspec.json.schema_components([Plan, *settings], ref_template="#/$defs/{name}")
    schema, *of_queues = schemas
    schema |= {"$defs": defs}
    for name, found in defs.items():
        properties = found.get("properties", {})
        for field, words in describe_fields(_find_struct(name, properties)).items():
            properties[field]["description"] = words
    _describe_sides(defs["Plan"])
    defs["Entries"] |= {"if": {"required": ["key"]}, "then": {"required": PREFIXES}}
    _describe_queues(defs["Plan"], specs, of_queues)
    return {"$schema": DIALECT, "title": "A migration plan of rowferry", **schema}


def _describe_sides(plan: dict[str, Any]) -> None:
    """A side is a table where it is there, and it is there unless the plan is that of queues without it."""
    for name in SIDES:
        (table,) = [one for one in plan["properties"][name].pop("anyOf") if "$ref" in one]
        plan["properties"][name] = table
    plan |= {"if": {"not": {"required": ["queue"]}}, "then": {"required": SIDES}}


def _list_specs() -> Iterator[QueueSpec]:
    """Yield the queues that are installed here, but those of faulty packages."""
    for name in list_queues():
        with suppress(UsageError):
            yield find_queue(name)


def _describe_queues(plan: dict[str, Any], specs: Sequence[QueueSpec], settings: Sequence[dict[str, Any]]) -> None:
    """Say what each [queue.NAME] takes; one of another name belongs to a package that is not here."""
    queue = plan["properties"]["queue"]
    queue["properties"] = {
        spec.name: {**found, "description": spec.summary} for spec, found in zip(specs, settings, strict=True)
    }
    queue["additionalProperties"] = {"type": "object"}


def _find_struct(name: str, fields: Collection[str]) -> type[msgspec.Struct]:
    """Return the struct of the plan, or of a queue's settings, that a definition of the schema is about."""
    structs = [msgspec.Struct]
    for struct in structs:
        structs += struct.__subclasses__()
    return next(
        each for each in structs if name.endswith(each.__name__) and {*each.__struct_encode_fields__} == {*fields}
    )


def describe_fields(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the docstrings of a struct's fields, its bases' included, by the names that the file has."""
    encoded = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
    found: dict[str, str] = {}
    for base in reversed(struct.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            found |= {encoded[name]: words for name, words in _read_docstrings(base).items() if name in encoded}
    return found


def _read_docstrings(struct: type) -> dict[str, str]:
    """Return the text that stands below each field in the source."""
    (definition,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(struct))).body
    found: dict[str, str] = {}
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    for node, below in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(below, ast.Expr):
            words = below.value
            if isinstance(words, ast.Constant) and isinstance(words.value, str):
                found[node.target.id] = " ".join(words.value.split())
    return found
