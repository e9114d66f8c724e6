"""The JSON Schema of the plan fits the structs, the file in docs/ and every plan of the tests and the docs."""

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from rowferry_cli.setup.plan_schema import make_schema
from support.docs.doc_pages import ROOT
from support.processes.cli import Run
from support.queue.plug_in import FAULTY, PlugIn

KEPT = ROOT / "docs" / "plan.schema.json"
PLANS = [*ROOT.glob("tests/corpus/*/rowferry.toml"), ROOT / "cli/rowferry_cli/setup/example_plan.toml"]


def test_the_kept_schema_is_what_the_command_prints(run_rowferry: Run) -> None:
    """Where this fails: `rowferry plan --schema > docs/plan.schema.json`."""
    assert run_rowferry("plan", "--schema").stdout == KEPT.read_text()


def test_the_schema_takes_every_plan(subtests: pytest.Subtests) -> None:
    schema = make_schema()
    assert len(PLANS) >= 10, "a test without a subject cannot fail"
    for path in PLANS:
        with subtests.test(str(path.relative_to(ROOT))):
            assert list(find_faults(tomllib.loads(path.read_text()), schema, schema)) == []


CHANGES: tuple[tuple[dict[str, Any], list[str]], ...] = (
    ({"legacy": {"bucket": 7}}, ["legacy.bucket"]),
    ({"legacy": {"bucket": "a", "buckets": "b"}}, ["legacy.buckets"]),
    ({"legacy": {}}, ["legacy.bucket"]),
    ({"migration": {"name": "a", "transfer": "copy"}}, ["migration.transfer"]),
    ({"queue": {"verify": {"then": ["tag"], "of": "a.b", "priority": 3, "weight": 0.5, "max_claimed": 7}}}, []),
    ({"queue": {"of_another_package": {"anything": [1, {"at": "all"}]}}}, []),
    ({"queue": {"verify": {"weigth": 2}}}, ["queue.verify.weigth"]),
    ({"queue": {"verify": {"then": "tag"}}}, ["queue.verify.then"]),
    ({"queue": {"tag": {"set": {"tier": 7}}}}, ["queue.tag.set.tier"]),
)


@pytest.mark.parametrize(("change", "faults"), CHANGES)
def test_the_schema_refuses_what_is_wrong_and_knows_the_settings_of_queues(
    change: dict[str, Any], faults: list[str]
) -> None:
    schema = make_schema()
    document = {**tomllib.loads(PLANS[-1].read_text()), **change}
    assert [fault.removeprefix(".") for fault in find_faults(document, schema, schema)] == faults


def test_the_schema_explains_queues_of_other_packages_too(plug_in: PlugIn, run_rowferry: Run) -> None:
    plug_in.install("broken", FAULTY)
    schema = json.loads(run_rowferry("plan", "--schema").stdout)
    queues = schema["$defs"]["Plan"]["properties"]["queue"]["properties"]
    assert queues["note"] == {"$ref": "#/$defs/NoteSettings", "description": "Note each entry, as note does."}
    assert "column" in schema["$defs"]["NoteSettings"]["properties"]
    assert "faulty" not in queues


KINDS: dict[str, Any] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
    "object": dict,
    "array": list,
}


def find_faults(value: Any, schema: dict[str, Any], whole: dict[str, Any], where: str = "") -> Iterator[str]:
    """Yield the places where a value does not fit a schema, by the keywords that msgspec writes."""
    if "$ref" in schema:
        yield from find_faults(value, whole["$defs"][schema["$ref"].rpartition("/")[2]], whole, where)
        return
    if "anyOf" in schema:
        if all(list(find_faults(value, one, whole, where)) for one in schema["anyOf"]):
            yield where
        return
    wrong_kind = "type" in schema and not isinstance(value, KINDS[schema["type"]])
    if wrong_kind or ("enum" in schema and value not in schema["enum"]):
        yield where
        return
    if isinstance(value, dict):
        yield from find_faults_of_keys(value, schema, whole, where)
    if isinstance(value, list):
        for number, below in enumerate(value):
            yield from find_faults(below, schema.get("items") or {}, whole, f"{where}[{number}]")


def find_faults_of_keys(
    value: dict[str, Any], schema: dict[str, Any], whole: dict[str, Any], where: str
) -> Iterator[str]:
    properties = schema.get("properties", {})
    yield from (f"{where}.{name}" for name in schema.get("required", []) if name not in value)
    for name, below in value.items():
        if name in properties:
            yield from find_faults(below, properties[name], whole, f"{where}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{where}.{name}"
        elif "additionalProperties" in schema:
            yield from find_faults(below, schema["additionalProperties"], whole, f"{where}.{name}")
