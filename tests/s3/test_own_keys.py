"""Which keys of a bucket are those that workers write: an upload under any other is not touched."""

from typing import Any

import pytest

from rowferry.plan_file import parse_plan
from rowferry_cli.operate.left_uploads import is_ours


def ours(key: str, *prefixes: tuple[str, str], production: str = "new") -> bool:
    """Return whether workers of a plan with these prefixes, legacy and production, write the key."""
    tables: list[dict[str, Any]] = [
        {"table": f"public.t{number}", "id": "id", "key": "path", "from": before, "to": after}
        for number, (before, after) in enumerate(prefixes)
    ]
    plan = {"migration": {"name": "m"}, "legacy": {"bucket": "old"}, "production": {"bucket": production}}
    return is_ours(key, parse_plan({**plan, "entries": tables}, "of the test"))


NEW, DEEP, CHAIN = [("image/", "avatar/")], [("a/", "a/new/")], [("a/", "b/"), ("b/", "c/")]
OWN = (
    ("avatar/1", NEW, "new", True),
    ("image/1", NEW, "new", False),
    ("avatar", NEW, "new", False),
    ("other/avatar/1", NEW, "new", False),
    ("a/new/1", DEEP, "new", True),  # of two prefixes the longer one counts
    ("a/1", DEEP, "new", False),
    ("b/1", CHAIN, "new", True),
    ("b/1", CHAIN, "old", False),  # in one bucket what is legacy for any table is not ours
)
"""Keys, with the prefixes of a plan and its production bucket, and whether workers of that plan write them."""


def test_the_production_prefix_is_ours_unless_it_is_legacy_for_a_table(subtests: pytest.Subtests) -> None:
    for key, prefixes, production, expected in OWN:
        with subtests.test(f"{key} {prefixes} {production}"):
            assert ours(key, *prefixes, production=production) == expected
