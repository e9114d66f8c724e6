"""Plans, forms, policies and tables of settings in the docs are as the code has them."""

import json
import re
from typing import Any, get_args, get_type_hints

import pytest

from rowferry.keys import map_text
from rowferry.plan import (
    CannedAcl,
    DatabaseLimits,
    Encryption,
    Entries,
    LegacySide,
    MigrationSettings,
    ObjectPrefix,
    ProductionSide,
    QueueSettings,
    Side,
)
from rowferry.plan_file import parse_plan
from rowferry.queue_spec import QueueSpec
from rowferry_queues.inspect.spec import INSPECT
from rowferry_queues.parts.spec import PARTS
from rowferry_queues.tag.spec import TAG
from support.docs.doc_pages import ROOT, is_in_section, read_blocks, read_plan_document, read_section, read_table
from support.entries.key_forms import form_of_key, production_key

pytestmark = pytest.mark.texts

PLAN = ROOT / "docs" / "plan.md"
FORMS = ROOT / "docs" / "forms.md"


def test_every_plan_is_one(subtests: pytest.Subtests) -> None:
    blocks = read_blocks("toml")
    assert blocks, "a test without a subject cannot fail"
    for block in blocks:
        with subtests.test(str(block)):
            parse_plan(read_plan_document(block), str(block))


@pytest.mark.parametrize(
    ("heading", "struct"),
    [
        ("`[migration]`", MigrationSettings),
        ("`[legacy]` and `[production]`", LegacySide),
        ("`[database]`", DatabaseLimits),
        ("`[[entries]]`", Entries),
        ("`[[objects]]`", ObjectPrefix),
        ("`[queue.NAME]`", QueueSettings),
    ],
)
def test_the_reference_of_the_plan_is_complete(heading: str, struct: Any) -> None:
    told = {row[0].strip("`"): row[2] for row in read_table(PLAN, heading)}
    assert list(told) == list(struct.__struct_encode_fields__)
    required = set(struct.__struct_encode_fields__[: len(struct.__struct_fields__) - len(struct.__struct_defaults__)])
    assert {name for name, default in told.items() if default == "required"} == required
    for name, default in zip(reversed(list(told)), reversed(struct.__struct_defaults__), strict=False):
        if default is not None and not hasattr(default, "factory"):
            wanted = list(default) if isinstance(default, tuple) else default
            assert json.loads(told[name].strip("`")) == wanted


@pytest.mark.parametrize(
    ("page", "heading", "spec"),
    [
        ("queues", "Tag objects", TAG),
        ("queues", "Inspect objects", INSPECT),
        ("queues", "Share one object among workers", PARTS),
    ],
)
def test_the_page_of_a_queue_names_all_its_settings(page: str, heading: str, spec: QueueSpec) -> None:
    section = read_section(ROOT / "docs" / f"{page}.md", heading)
    own = set(spec.settings.__struct_encode_fields__) - set(QueueSettings.__struct_encode_fields__)
    assert {name for name in own if f"`{name}`" not in section} == set()


def test_what_is_said_of_production_objects_is_complete() -> None:
    rows = read_table(PLAN, "Settings for production objects")
    fields = ProductionSide.__struct_encode_fields__[len(Side.__struct_fields__) :]
    assert [row[0].strip("`") for row in rows] == list(fields)
    told = {row[0].strip("`"): set(re.findall(r'"([\w:-]+)"', f"{row[1]} {row[3]}")) for row in rows}
    assert told["acl"] == {"copy", *get_args(CannedAcl)}
    assert told["encryption"] == set(get_args(Encryption))


def test_the_values_of_transfer_and_addressing_are_all_named() -> None:
    rows = {row[0].strip("`"): row[1] for row in read_table(PLAN, "`[migration]`")}
    rows |= {row[0].strip("`"): row[1] for row in read_table(PLAN, "`[legacy]` and `[production]`")}
    for name, struct in (("transfer", MigrationSettings), ("addressing", Side)):
        assert set(re.findall(r'"(\w+)"', rows[name])) == set(get_args(get_type_hints(struct)[name]))


def test_the_longer_prefix_wins_as_told(subtests: pytest.Subtests) -> None:
    rows = read_table(FORMS, "Which form a row has")
    assert rows, "a test without a subject cannot fail"
    for row in rows:
        legacy_prefix, production_prefix, legacy_key, production = (
            "" if cell == "*(empty)*" else cell.strip("`") for cell in row
        )
        with subtests.test(" | ".join(row)):
            entries = Entries("t", "id", "key", legacy_prefix, production_prefix)
            assert form_of_key(legacy_key, entries) == "legacy"
            assert production_key(legacy_key, entries) == production
            assert form_of_key(production, entries) == "production"


def test_a_text_becomes_what_the_page_shows() -> None:
    (block,) = [one for one in read_blocks("toml", pages=[FORMS]) if is_in_section(one, "URLs and other texts")]
    (entries,) = parse_plan(read_plan_document(block), str(block)).entries
    (row,) = read_table(FORMS, "URLs and other texts")
    before, legacy, production, after = (cell.strip("`") for cell in row)
    keys, text, _ = map_text(before, entries)
    assert (keys.legacy, keys.production, text) == (legacy, production, after)


def check_policy(statement: dict[str, Any]) -> None:
    """Fail where a policy allows more than it needs; it may delete nothing but the probe."""
    actions = {statement["Action"]} if isinstance(statement["Action"], str) else set(statement["Action"])
    assert all(action.startswith("s3:") and "*" not in action for action in actions)
    resource = statement["Resource"].rpartition(":")[2]
    if any("Delete" in action for action in actions):
        assert resource == "sketch-production-s3/rowferry-check-*"
    if resource.startswith("sketch-legacy-s3"):
        assert actions <= {"s3:ListBucket", "s3:GetObject", "s3:GetObjectTagging"}


def test_no_policy_allows_a_delete_but_of_the_probe(subtests: pytest.Subtests) -> None:
    blocks = read_blocks("json")
    assert blocks, "a test without a subject cannot fail"
    for block in blocks:
        with subtests.test(str(block)):
            for statement in json.loads(block.text)["Statement"]:
                check_policy(statement)
