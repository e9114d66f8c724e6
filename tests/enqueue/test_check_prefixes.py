"""`rowferry check` looks at the listing of each [[objects]], and at keys where two prefixes meet."""

from typing import Any

from support.entries.checks import check, entries_of, problems
from support.entries.listed_objects import name_objects, put_objects
from support.entries.migration import Migration
from support.s3.listing_page import page
from support.s3.listing_requests import http, is_listing
from support.s3.request_log import RequestLog


def prefixes(migration: Migration, *objects: dict[str, Any]) -> Migration:
    name_objects(migration)
    migration.plan["objects"] = list(objects)
    return migration


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


def test_a_server_that_lists_in_another_order_is_refused(logged_migration: Migration, log: RequestLog) -> None:
    name_objects(logged_migration)
    put_objects(logged_migration, ["1"])
    listing = page(["variants/a/b", "variants/a b"])
    with log.answering(lambda seen: is_listing(seen) and "max-keys=1000" in seen.query, http(listing.body)):
        (what,) = problems(logged_migration)
    assert what.startswith("variants/*: no ranges can be cut from the listing of ")
    assert "lists 'variants/a b' after 'variants/a/b'" in what


def test_a_bucket_that_may_not_be_listed_is_a_problem(logged_migration: Migration, log: RequestLog) -> None:
    name_objects(logged_migration)
    put_objects(logged_migration, ["1"])
    with log.refusing(is_listing, 403, "AccessDenied"):
        assert any("cannot be listed" in what for what in problems(logged_migration))


def test_two_prefixes_that_may_become_one_key_are_a_problem(migration: Migration) -> None:
    prefixes(migration, {"prefix": "a/", "to": "x/"}, {"prefix": "b/", "to": "x/"})
    put_objects(migration, ["1"], prefix="a/")
    put_objects(migration, ["2"], prefix="b/")
    (what,) = problems(migration)
    assert what == (
        "a/* and b/*: legacy keys that begin with 'a/' and with 'b/' become keys below 'x/', where two objects may meet"
    )


def test_a_prefix_that_moves_into_another_is_a_problem_once_objects_stand_there(migration: Migration) -> None:
    prefixes(migration, {"prefix": ""}, {"prefix": "a/", "to": "x/y/"})
    put_objects(migration, ["1"], prefix="a/")
    assert problems(migration) == []
    assert ("note", "the objects of a/* are objects of * as well") in found(migration, "as well")
    assert found(migration, "one of the two has no object now")
    put_objects(migration, ["1"], prefix="x/y/")
    assert any("'a/' and with 'x/y/' become keys below 'x/y/'" in what for what in problems(migration))


def test_the_production_keys_of_entries_count_as_well(migration: Migration) -> None:
    entries = entries_of(migration)
    prefixes(migration, {"prefix": "variants/", "to": "avatar/small/"})
    migration.plan["entries"] = [entries]
    migration.fill(2)
    put_objects(migration, ["1"])
    assert problems(migration) == []
    put_objects(migration, ["small/1"], prefix="image/")
    assert any("'variants/' and with 'image/small/' become keys below 'avatar/small/'" in what
               for what in problems(migration))  # fmt: skip


def test_prefixes_beside_one_another_are_fine(migration: Migration) -> None:
    prefixes(migration, {"prefix": "a/"}, {"prefix": "b/"}, {"prefix": "image/", "to": "avatar/"})
    for prefix in ("a/", "b/", "image/"):
        put_objects(migration, ["1"], prefix=prefix)
    assert [finding.level for finding in check(migration) if finding.what.startswith(("a/", "b/", "image/"))] == [
        "fine"
    ] * 3
    assert problems(migration) == []
