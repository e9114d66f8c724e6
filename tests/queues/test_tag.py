"""Production objects are tagged from rows, [[objects]] and prefixes; what they had before stays, counts balance."""

from collections.abc import Callable, Iterator

import pytest

from rowferry_lab.servers.s3_servers import S3Server
from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration
from support.entries.tagged_rows import add, faked_site, prepare, run
from support.s3.buckets import QUICK_SERVER, fresh_buckets
from support.s3.fake_s3 import FakeAddress
from support.s3.servers import running_server

pytestmark = pytest.mark.by_day(QUICK_SERVER)


@pytest.fixture(params=["moto", "versitygw", "seaweedfs"])
def tagged(request: pytest.FixtureRequest, make_migration: Callable[..., Migration]) -> Iterator[Migration]:
    """Production rows with a column `tenant_id`, on each server."""
    with fresh_buckets(request.getfixturevalue(request.param)) as buckets:
        yield prepare(make_migration(buckets, buckets))


@pytest.fixture(scope="session")
def seaweedfs() -> Iterator[S3Server]:
    with running_server("seaweedfs") as server:
        yield server


@pytest.fixture
def faked(make_migration: Callable[..., Migration]) -> Iterator[tuple[Migration, FakeAddress]]:
    """The same on the fake server."""
    with faked_site(make_migration) as found:
        yield found


@pytest.fixture
def site(faked: tuple[Migration, FakeAddress]) -> Migration:
    return faked[0]


def test_fixed_values_and_columns_are_merged_with_what_is_there(tagged: Migration) -> None:
    new = add(tagged, 1, "t1", {})
    other = add(tagged, 2, "Köln & <co>".replace("& <", "+ ").replace(">", ""), {"owner": "me", "tier": "hot"})
    equal = add(tagged, 3, "t3", {"tier": "cold", "tenant": "t3", "x": "y"})
    null = {add(tagged, 4, None, {"tenant": "t1"}): {"tenant": "t1"}, add(tagged, 5, None, {}): {}}
    empty = add(tagged, 6, "", {"tenant": "t1"})
    assert run(tagged) == {"migrated": 5, "kept": 1}
    assert tagged.production.tags(new) == {"tier": "cold", "tenant": "t1"}
    assert tagged.production.tags(other) == {"owner": "me", "tier": "cold", "tenant": "Köln + co"}
    assert tagged.production.tags(equal) == {"tier": "cold", "tenant": "t3", "x": "y"}
    for key, had in null.items():
        assert tagged.production.tags(key) == had | {"tier": "cold"}, "a null leaves the tag as it is"
    assert tagged.production.tags(empty) == {"tenant": "", "tier": "cold"}
    assert tagged.production.read(other) == b"body"


def test_where_all_columns_are_null_no_request_is_sent(faked: tuple[Migration, FakeAddress]) -> None:
    migration, server = faked
    migration.plan["queue"]["tag"]["set"] = {"tenant": {"column": "tenant_id"}}
    add(migration, 1, None, {"tenant": "t1"})
    before = server.fake.read_stats()["requests"]
    migration.enqueue(queue="tag")
    seen: list[str] = []
    server.fake.before = lambda request: seen.append(request.operation)
    migration.work("tag")
    assert migration.counts("tag") == {"kept": 1}
    assert before
    assert not {"GetObjectTagging", "PutObjectTagging"} & set(seen)


def test_too_many_tags_are_a_conflict_that_says_why_and_changes_nothing(tagged: Migration) -> None:
    nine = {f"tag-{number}": "a" for number in range(9)}
    full = add(tagged, 1, "t1", nine)
    fits = add(tagged, 4, None, nine)
    assert run(tagged) == {"migrated": 1, "conflict": 1}
    words = "the object has 9 tags, and 'tier', 'tenant' would be more than the 10 that S3 takes"
    assert tagged.failure_of(1) == ("conflict", "TooManyTags", f"TooManyTags: {words}")
    assert tagged.production.tags(full) == nine
    assert tagged.production.tags(fits) == {**nine, "tier": "cold"}


def test_a_missing_object_is_missing_and_legacy_rows_and_their_bucket_are_left_alone(tagged: Migration) -> None:
    add(tagged, 1, "t1")
    key = add(tagged, 2, "t2", {})
    tagged.legacy.put(f"{FROM}3.png", b"body")
    tagged.execute("insert into public.avatars values (3, %s, 't3')", (f"{FROM}3.png",))
    assert run(tagged) == {"missing": 1, "migrated": 1}
    assert tagged.failure_of(1)[0] == "missing"
    assert list(tagged.production.listing()) == [key], "nothing is made"
    assert tagged.legacy.tags(f"{FROM}3.png") == {}


def test_only_rows_that_meet_the_condition_are_tagged(site: Migration) -> None:
    site.plan["queue"]["tag"]["where"] = "tenant_id like 't%' -- of tenants"
    meant, other = add(site, 1, "t1", {}), add(site, 2, "u2", {})
    null = add(site, 3, None, {})
    assert run(site) == {"migrated": 1}
    assert site.production.tags(meant) == {"tier": "cold", "tenant": "t1"}
    assert site.production.tags(other) == site.production.tags(null) == {}


def test_rows_of_one_object_agree_or_it_stays_as_it_is(site: Migration) -> None:
    """The object is tagged once, for the first of the rows that agree."""
    shared = add(site, 1, "t1", {}, "shared")
    add(site, 2, "t1", name="shared")
    add(site, 3, None, name="shared")
    torn = add(site, 4, "t4", {"x": "y"}, "torn")
    add(site, 5, "t5", name="torn")
    assert run(site) == {"migrated": 1, "kept": 2, "conflict": 2}
    assert site.production.tags(shared) == {"tier": "cold", "tenant": "t1"}
    assert site.production.tags(torn) == {"x": "y"}
    assert "ask for different values of the tag 'tenant'" in site.failure_of(5)[2]


def test_rows_with_several_objects_have_all_of_them_tagged(site: Migration) -> None:
    entries = site.plan["entries"][0]
    entries |= {"objects": f"array['{FROM}a' || id, '{FROM}b' || id]", "optional": f"array['{FROM}c' || id]"}
    add(site, 1, "t1", {})
    keys = [f"{TO}a1", f"{TO}b1"]
    for key in keys:
        site.production.put(key, b"body")
    assert run(site) == {"migrated": 1}
    assert [site.production.tags(key) for key in keys] == [{"tier": "cold", "tenant": "t1"}] * 2
    assert site.production.tags(f"{TO}1.png") == {}
    site.production.delete(f"{TO}b1")
    site.production.tag(f"{TO}a1", {})
    assert run(site) == {"migrated": 1, "missing": 1}
    assert site.failure_of(1)[0] == "missing"
    assert site.production.tags(f"{TO}a1") == {"tier": "cold", "tenant": "t1"}


def test_rows_that_stay_need_no_legacy_side(tagged: Migration) -> None:
    """Whoever only wants to tag writes a plan without a legacy bucket."""
    del tagged.plan["legacy"]
    tagged.plan["entries"] = [
        {"table": "public.avatars", "id": "id", "key": "path", "from": "", "to": "", "rows": "stay"}
    ]
    key = add(tagged, 1, "t1", {"owner": "me"})
    add(tagged, 2, "t2")
    assert run(tagged) == {"migrated": 1, "missing": 1}
    assert tagged.production.tags(key) == {"owner": "me", "tier": "cold", "tenant": "t1"}


def test_a_prefix_of_the_production_bucket_is_tagged_without_rows(tagged: Migration) -> None:
    del tagged.plan["legacy"]
    tagged.plan["entries"] = []
    tagged.plan["queue"]["tag"] = {"of": "s3://production/cold/", "set": {"tier": "cold"}}
    keys = [f"cold/{number}.png" for number in range(25)]
    for key in [*keys, "warm/1.png"]:
        tagged.production.put(key, b"body")
    tagged.production.tag(keys[0], {"tier": "cold"})
    tagged.production.tag(keys[1], {"owner": "me"})
    assert run(tagged, 10) == {"migrated": 24, "kept": 1}
    assert {key: tagged.production.tags(key) for key in keys} == {
        key: {"owner": "me", "tier": "cold"} if key == keys[1] else {"tier": "cold"} for key in keys
    }
    assert tagged.production.tags("warm/1.png") == {}


def test_the_production_objects_of_objects_without_rows_are_tagged(tagged: Migration) -> None:
    tagged.plan["entries"] = []
    tagged.plan["objects"] = [{"prefix": "old/", "to": "new/"}]
    tagged.plan["queue"]["tag"] = {"set": {"tier": "cold"}}
    for number in range(5):
        tagged.legacy.put(f"old/{number}", b"body")
        if number:
            tagged.production.put(f"new/{number}", b"body")
    assert run(tagged) == {"migrated": 4, "missing": 1}
    assert tagged.production.tags("new/4") == {"tier": "cold"}
    assert tagged.legacy.tags("old/4") == {}


def test_migrated_rows_are_tagged_in_a_chain(tagged: Migration) -> None:
    """A row that does not meet the condition of `tag` moves all the same."""
    tagged.plan["queue"]["migrate"] = {"then": ["tag"]}
    tagged.plan["queue"]["tag"]["where"] = "tenant_id is distinct from 't2'"
    for number in (1, 2, 3):
        tagged.legacy.put(f"{FROM}{number}.png", b"body", Tagging="owner=me")
        tagged.execute("insert into public.avatars values (%s, %s, %s)", (number, f"{FROM}{number}.png", f"t{number}"))
    tagged.legacy.delete(f"{FROM}3.png")
    tagged.enqueue()
    tagged.work("migrate", "tag")
    assert tagged.counts("migrate") == {"migrated": 2, "missing": 1}
    assert tagged.counts("tag") == {"migrated": 1}
    tagged.check_balance()
    assert tagged.production.tags(f"{TO}1.png") == {"owner": "me", "tier": "cold", "tenant": "t1"}
    assert tagged.production.tags(f"{TO}2.png") == {"owner": "me"}
