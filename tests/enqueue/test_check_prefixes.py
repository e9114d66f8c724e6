"""`rowferry check` looks at the listing of each [[objects]], and at keys where two prefixes meet."""

from collections.abc import Mapping

from support.entries.checks import check, entries_of, problems
from support.entries.listed_objects import name_objects, put_objects
from support.entries.migration import Migration
from support.s3.listing_page import http, is_listing, page
from support.s3.request_log import RequestLog


def prefixes(migration: Migration, prefixes: Mapping[str, str | None]) -> None:
    """Plan these prefixes, each with its `to`."""
    name_objects(migration)
    migration.plan["objects"] = [{"prefix": name} | ({"to": to} if to else {}) for name, to in prefixes.items()]


def found(migration: Migration, words: str, **more: bool) -> list[tuple[str, str]]:
    return [(finding.level, finding.what) for finding in check(migration, **more) if words in finding.what]


def test_a_page_is_listed_and_an_example_shown(any_migration: Migration) -> None:
    name_objects(any_migration)
    put_objects(any_migration, ["1", "2"])
    assert found(any_migration, "variants/*") == [
        ("fine", "variants/*: 2 objects, for example 'variants/1' becomes 'v/1'")
    ]
    assert problems(any_migration) == []


def test_a_prefix_without_objects_is_a_problem_unless_that_is_allowed(migration: Migration) -> None:
    name_objects(migration, prefix="variant/")
    put_objects(migration, ["1"])
    (what,) = problems(migration, allow_empty=False)
    assert what == "variant/*: the legacy bucket has no object whose key begins with 'variant/'"
    assert found(migration, "variant/*", allow_empty=True)[0][0] == "note"


def test_a_bucket_that_lists_in_another_order_or_may_not_be_listed_is_a_problem(
    logged_migration: Migration, log: RequestLog
) -> None:
    name_objects(logged_migration)
    put_objects(logged_migration, ["1"])
    listing = page(["variants/a/b", "variants/a b"])
    with log.answering(lambda seen: is_listing(seen) and "max-keys=1000" in seen.query, http(listing.body)):
        (what,) = problems(logged_migration)
    assert what.startswith("variants/*: no ranges can be cut from the listing of ")
    assert "lists 'variants/a b' after 'variants/a/b'" in what
    with log.refusing(is_listing, 403, "AccessDenied"):
        assert any("cannot be listed" in what for what in problems(logged_migration))


def test_the_production_keys_of_entries_count_as_well(migration: Migration) -> None:
    entries = entries_of(migration)
    prefixes(migration, {"variants/": "avatar/small/"})
    migration.plan["entries"] = [entries]
    migration.fill(2)
    put_objects(migration, ["1"])
    assert problems(migration) == []
    put_objects(migration, ["small/1"], prefix="image/")
    words = "'variants/' and with 'image/small/' become keys below 'avatar/small/'"
    assert any(words in what for what in problems(migration))
