"""Every field of a side, those to come as well: refused where it cannot be meant, shown, and free to change or not."""

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from psycopg.errors import InvalidParameterValue
from psycopg.types.json import Jsonb

from rowferry.errors import PlanError
from rowferry.plan import PROPERTIES, LegacySide, ProductionSide
from rowferry.plan_file import parse_plan
from rowferry.s3.properties import content_headers, write_headers
from rowferry_cli.setup.plan_words import describe_plan
from support.entries.entry_table import EntryTable

NO_HEADER = {
    "tags": "the Tagging of a worker gives them, since a server may drop the header",
    "public_url": "only `rowferry check` reads it",
}
FIXED = {"bucket", "endpoint_url"}
"""They say which objects are meant; all other fields say how they are reached, and what they become."""
NEEDED: dict[str, dict[str, Any]] = {"kms_key_id": {"encryption": "aws:kms"}}
"""What a field cannot be without."""
OTHER: dict[str, str] = {"endpoint_url": "https://elsewhere.example.com", "public_url": "https://cdn.example.com/"}
TYPES = {
    side.name: {name: kind for name, kind in get_type_hints(side).items() if name in side.__struct_fields__}
    for side in (LegacySide, ProductionSide)
}
FIELDS = [(side, name) for side, kinds in TYPES.items() for name in kinds]


def choose_value(kind: Any) -> Any:
    """Return a value of a type that is no field's default."""
    if kind in VALUES:
        return VALUES[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return inner[-1]
    if origin in {Union, UnionType}:
        return choose_value([one for one in inner if one is not NoneType][-1])
    if origin is Annotated:
        return choose_value(inner[0])
    raise AssertionError(f"say here which value to try for {kind}")


VALUES: dict[Any, Any] = {str: "other", float: 7.5, bool: True, dict[str, str]: {"team": "images"}}


def value_of(side: str, name: str) -> Any:
    return OTHER.get(name) or choose_value(TYPES[side][name])


TEXTS = [name for name in PROPERTIES if str in get_args(TYPES["production"][name])]


def test_the_properties_are_the_fields_that_legacy_does_not_have() -> None:
    assert set(PROPERTIES) == set(TYPES["production"]) - set(TYPES["legacy"])
    assert set(TEXTS) > {"cache_control", "storage_class"}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("text", ["", " max-age=1", "max-age=1\n", "dä", "a\r\nx-evil: 1", "a\0"])
def test_a_text_that_fits_in_no_header_is_no_plan(name: str, text: str) -> None:
    value = {name: "https://example.com/" + text} if name == "public_url" and text else {name: text}
    with pytest.raises(PlanError, match=rf"`{name}` of \[production\] must be"):
        ProductionSide("new", **{**NEEDED.get(name, {}), **value})


def describe_properties(**properties: Any) -> str:
    """Return the line of `rowferry plan` about production objects."""
    entries = {"table": "t", "id": "id", "key": "path", "from": "image/", "to": "avatar/"}
    document = {
        "migration": {"name": "m"},
        "legacy": {"bucket": "old"},
        "production": {"bucket": "new", **properties},
        "entries": [entries],
    }
    lines = describe_plan(parse_plan(document, "the plan"))
    return next((line for line in lines if "production objects:" in line), "")


def test_each_property_becomes_a_header_and_is_shown_by_rowferry_plan(subtests: pytest.Subtests) -> None:
    assert describe_properties() == ""
    for name in PROPERTIES:
        needed: dict[str, Any] = NEEDED.get(name, {})
        value = value_of("production", name)
        with subtests.test(name):
            assert f"{name} {value}" in describe_properties(**needed, **{name: value})
            before, side = ProductionSide("new", **needed), ProductionSide("new", **needed, **{name: value})
            added = {*content_headers(side), *write_headers(side)} - {*content_headers(before), *write_headers(before)}
            assert [text for _, text in added] == ([] if name in NO_HEADER else [value])


def test_while_batches_wait_only_a_bucket_and_its_endpoint_are_fixed(table: EntryTable) -> None:
    table.add_legacy(range(3)).enqueue()
    fixed: set[tuple[str, str]] = set()
    for side, name in FIELDS:
        change = "update rowferry.migration set plan = jsonb_set(plan, %s, %s)"
        try:
            table.execute(change, ([side, name], Jsonb(value_of(side, name))))
        except InvalidParameterValue:
            fixed.add((side, name))
    assert fixed == {(side, name) for side, name in FIELDS if name in FIXED}
    revisions = 1 + len(FIELDS) - len(fixed)
    assert table.execute("select revision from rowferry.migration") == [{"revision": revisions}]
