"""Which keys of a bucket are those that workers write: an upload under any other is not touched."""

from typing import Any

import pytest

from rowferry.plan_file import parse_plan
from rowferry_cli.operate.clean_uploads import is_ours


def ours(key: str, *prefixes: tuple[str, str], production: str = "new") -> bool:
    """Return whether workers of a plan with these prefixes, legacy and production, write the key."""
    tables: list[dict[str, Any]] = [
        {"table": f"public.t{number}", "id": "id", "key": "path", "from": before, "to": after}
        for number, (before, after) in enumerate(prefixes)
    ]
    plan = {"migration": {"name": "m"}, "legacy": {"bucket": "old"}, "production": {"bucket": production}}
    return is_ours(key, parse_plan({**plan, "entries": tables}, "of the test"))


@pytest.mark.parametrize(
    ("key", "is_ours"), [("avatar/1", True), ("image/1", False), ("avatar", False), ("other/avatar/1", False)]
)
def test_the_production_prefix_is_ours(key: str, *, is_ours: bool) -> None:
    assert ours(key, ("image/", "avatar/")) == is_ours


@pytest.mark.parametrize(("key", "is_ours"), [("a/new/1", True), ("a/1", False)])
def test_of_two_prefixes_the_longer_one_counts(key: str, *, is_ours: bool) -> None:
    assert ours(key, ("a/", "a/new/")) == is_ours


@pytest.mark.parametrize(("production", "is_ours"), [("new", True), ("old", False)])
def test_in_one_bucket_what_is_legacy_for_any_table_is_not_ours(production: str, *, is_ours: bool) -> None:
    assert ours("b/1", ("a/", "b/"), ("b/", "c/"), production=production) == is_ours
