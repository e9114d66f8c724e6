"""What `rowferry check` says of a provider: only what the plan meets, and what to type."""

from typing import Any

import pytest

from rowferry.errors import PlanError
from rowferry.plan import Plan
from rowferry.plan_file import parse_plan
from rowferry_enqueue.checks.buckets.providers import check_providers
from support.entries.checks import check, problems
from support.entries.migration import Migration

R2 = "https://0123abc.r2.cloudflarestorage.com"
GCS = "https://storage.googleapis.com"


def make_plan(legacy: str | None, production: str | None, transfer: str = "auto", **more: Any) -> Plan:
    sides: dict[str, dict[str, Any]] = {"legacy": {"bucket": "old"}, "production": {"bucket": "new", **more}}
    for name, url in (("legacy", legacy), ("production", production)):
        sides[name] |= {"endpoint_url": url} if url else {}
    entries = [{"table": "t", "id": "id", "key": "key", "from": "a/", "to": "b/"}]
    return parse_plan({"migration": {"name": "x", "transfer": transfer}, **sides, "entries": entries}, "test")


def say(plan: Plan) -> list[tuple[str, str]]:
    return [(found.what, found.remedy) for found in check_providers(plan)]


def test_tags_and_acls_that_the_provider_lacks_are_named_with_what_to_type() -> None:
    ((what, remedy),) = say(make_plan(None, R2, acl="public-read"))
    assert what == (
        "production is Cloudflare R2, by its endpoint: no tags, no ACLs of objects; what is tried here goes before that"
    )
    assert 'write tags = "none" in [production]' in remedy
    assert "leave `acl` out of [production]" in remedy


def test_nothing_is_said_where_the_plan_needs_nothing_that_lacks() -> None:
    assert say(make_plan(None, None)) == []
    assert say(make_plan(R2, R2, tags="none")) == []
    assert say(make_plan("http://127.0.0.1:9000", "http://127.0.0.1:9001")) == []


def test_large_copies_are_named() -> None:
    ((what, remedy),) = say(make_plan(GCS, GCS))
    assert "no UploadPartCopy" in what
    assert 'transfer = "stream"' in remedy
    assert say(make_plan(GCS, GCS, "stream")) == []


def test_a_side_that_the_plan_names_is_said_to_be_named() -> None:
    ((what, _),) = say(make_plan(None, "https://s3.example.org", provider="garage"))
    assert what.startswith("production is Garage, by the plan: no tags")
    with pytest.raises(
        PlanError, match=r'`production.provider` is "mini" \(did you mean minio\?\): write one of "aws", '
    ):
        say(make_plan(None, "https://s3.example.org", provider="mini"))


def test_check_says_it_and_signs_for_the_region_of_the_provider_where_the_plan_names_none(migration: Migration) -> None:
    migration.plan["production"]["provider"] = "r2"
    assert any('the region "auto" is wrong' in each for each in problems(migration))
    migration.plan["production"]["region"] = "us-east-1"
    (found,) = [each for each in check(migration) if "Cloudflare R2" in each.what]
    assert (found.level, problems(migration)) == ("note", [])
