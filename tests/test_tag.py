"""Production objects are tagged from rows, [[objects]] and prefixes; what they had before stays, counts balance."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from entry_table import FROM, TO
from fake_s3 import FakeAddress, running_fakes
from listed_objects import outcomes
from migration import Migration
from request_log import LoggedRequest, RequestLog
from rowferry.errors import PlanError
from rowferry_lab.servers.fake_s3_settings import Deviations
from rowferry_lab.servers.s3_servers import S3Server
from s3_servers import SERVERS, NotInstalled
from servers import connect_s3, fresh_buckets, remove_bucket

PER_TENANT = {"tier": "cold", "tenant": {"column": "tenant_id"}}


@pytest.fixture(params=["moto", "versitygw", "seaweedfs"])
def tagged(request: pytest.FixtureRequest, make_migration: Callable[..., Migration]) -> Iterator[Migration]:
    """Production rows with a column `tenant_id`, on each server."""
    yield from open_migration(request, request.param, make_migration)


@pytest.fixture(scope="session")
def seaweedfs() -> Iterator[S3Server]:
    try:
        server = SERVERS["seaweedfs"]()
    except NotInstalled as reason:
        pytest.skip(str(reason))
    with server:
        yield server


def open_migration(
    request: pytest.FixtureRequest, name: str, make_migration: Callable[..., Migration]
) -> Iterator[Migration]:
    with fresh_buckets(request.getfixturevalue(name)) as buckets:
        yield prepare(make_migration(buckets, buckets))


def prepare(migration: Migration, **settings: Any) -> Migration:
    migration.execute("alter table public.avatars add tenant_id text")
    migration.plan["queue"] = {"tag": {"set": PER_TENANT, **settings}}
    return migration


@pytest.fixture
def faked(make_migration: Callable[..., Migration]) -> Iterator[tuple[Migration, FakeAddress]]:
    """The same on the fake server."""
    with running_fakes(Deviations()) as (server,), fresh_buckets(server) as buckets:
        yield prepare(make_migration(buckets, buckets)), server


@pytest.fixture
def site(faked: tuple[Migration, FakeAddress]) -> Migration:
    return faked[0]


def add(
    migration: Migration,
    row_id: int,
    tenant: str | None,
    tags: Mapping[str, str] | None = None,
    name: str | None = None,
) -> str:
    """Add a production row, and its object with these tags; return the key."""
    key = f"{TO}{name or f'{row_id}.png'}"
    if tags is not None:
        migration.production.put(key, b"body")
        if tags:
            migration.production.tag(key, tags)
    migration.execute("insert into public.avatars values (%s, %s, %s)", (row_id, key, tenant))
    return key


def run(migration: Migration, batch_size: int = 100, **asked: Any) -> dict[str, int]:
    """Tag, and return the counts of all batches of the queue; each balances."""
    migration.enqueue(batch_size, queue="tag", **asked)
    migration.work("tag")
    migration.check_balance()
    return outcomes(migration, "tag")


def test_fixed_values_and_columns_are_merged_with_what_is_there(tagged: Migration) -> None:
    new = add(tagged, 1, "t1", {})
    other = add(tagged, 2, "Köln & <co>".replace("& <", "+ ").replace(">", ""), {"owner": "me", "tier": "hot"})
    equal = add(tagged, 3, "t3", {"tier": "cold", "tenant": "t3", "x": "y"})
    assert run(tagged) == {"migrated": 2, "kept": 1}
    assert tagged.production.tags(new) == {"tier": "cold", "tenant": "t1"}
    assert tagged.production.tags(other) == {"owner": "me", "tier": "cold", "tenant": "Köln + co"}
    assert tagged.production.tags(equal) == {"tier": "cold", "tenant": "t3", "x": "y"}
    assert tagged.production.read(other) == b"body"


def test_a_null_leaves_the_tag_as_it_is(tagged: Migration) -> None:
    had = add(tagged, 1, None, {"tenant": "t1"})
    had_none = add(tagged, 2, None, {})
    assert run(tagged) == {"migrated": 2}
    assert tagged.production.tags(had) == {"tenant": "t1", "tier": "cold"}
    assert tagged.production.tags(had_none) == {"tier": "cold"}


def test_an_empty_text_is_an_empty_value(site: Migration) -> None:
    key = add(site, 1, "", {"tenant": "t1"})
    assert run(site) == {"migrated": 1}
    assert site.production.tags(key) == {"tenant": "", "tier": "cold"}


def test_where_all_columns_are_null_no_request_is_sent(faked: tuple[Migration, FakeAddress]) -> None:
    migration, server = faked
    migration.plan["queue"]["tag"]["set"] = {"tenant": {"column": "tenant_id"}}
    add(migration, 1, None, {"tenant": "t1"})
    before = server.fake.read_stats()["requests"]
    migration.enqueue(queue="tag")
    seen: list[str] = []
    server.fake.before = lambda request: seen.append(request.operation)
    migration.work("tag")
    assert outcomes(migration, "tag") == {"kept": 1}
    assert before
    assert not {"GetObjectTagging", "PutObjectTagging"} & set(seen)


def test_a_second_run_writes_nothing(faked: tuple[Migration, FakeAddress]) -> None:
    migration, server = faked
    for number in range(20):
        add(migration, number, f"t{number}", {"owner": "me"})
    assert run(migration, 6) == {"migrated": 20}
    seen: list[str] = []
    server.fake.before = lambda request: seen.append(request.operation)
    assert run(migration, 6) == {"migrated": 20, "kept": 20}
    assert seen.count("GetObjectTagging") == 20
    assert "PutObjectTagging" not in seen


def test_each_conflict_says_why_and_changes_nothing(tagged: Migration) -> None:
    nine = {f"tag-{number}": "a" for number in range(9)}
    full, long, strange = (add(tagged, 1, "t1", nine), add(tagged, 2, "x" * 257, {}), add(tagged, 3, "a,b", {}))
    fits = add(tagged, 4, None, nine)
    assert run(tagged) == {"migrated": 1, "conflict": 3}
    words = "the object has 9 tags, and 'tier', 'tenant' would be more than the 10 that S3 takes"
    assert tagged.failure_of(1) == ("conflict", "TooManyTags", f"TooManyTags: {words}")
    assert "'tenant' would have a value of 257 characters, and S3 takes 256" in tagged.failure_of(2)[2]
    assert "'tenant' would have ',' in its value" in tagged.failure_of(3)[2]
    assert tagged.production.tags(full) == nine
    assert tagged.production.tags(long) == tagged.production.tags(strange) == {}
    assert tagged.production.tags(fits) == {**nine, "tier": "cold"}


def test_a_missing_object_is_missing_and_nothing_is_made(tagged: Migration) -> None:
    add(tagged, 1, "t1")
    key = add(tagged, 2, "t2", {})
    assert run(tagged) == {"missing": 1, "migrated": 1}
    assert tagged.failure_of(1)[0] == "missing"
    assert list(tagged.production.listing()) == [key]


def test_a_requeue_takes_up_what_was_left(site: Migration) -> None:
    late = add(site, 1, "t1")
    key = add(site, 2, "t2", {})
    assert run(site) == {"missing": 1, "migrated": 1}
    site.production.tag(key, {"tier": "hot"})
    site.production.put(late, b"body")
    site.execute("update rowferry.batch_queue set status = 'INIT'")
    site.work("tag")
    assert outcomes(site, "tag") == {"migrated": 2}
    site.check_balance()
    assert site.production.tags(late) == {"tier": "cold", "tenant": "t1"}
    assert site.production.tags(key) == {"tier": "hot"}  # settled before, so not read again


def test_legacy_rows_and_the_legacy_bucket_are_left_alone(tagged: Migration) -> None:
    tagged.legacy.put(f"{FROM}1.png", b"body")
    tagged.execute("insert into public.avatars values (1, %s, 't1')", (f"{FROM}1.png",))
    add(tagged, 2, "t2", {})
    assert run(tagged) == {"migrated": 1}
    assert tagged.legacy.tags(f"{FROM}1.png") == {}


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
    assert outcomes(tagged) == {"migrated": 2, "missing": 1}
    assert outcomes(tagged, "tag") == {"migrated": 1}
    tagged.check_balance()
    assert tagged.production.tags(f"{TO}1.png") == {"owner": "me", "tier": "cold", "tenant": "t1"}
    assert tagged.production.tags(f"{TO}2.png") == {"owner": "me"}


def test_the_version_that_was_read_is_tagged(moto: S3Server, make_migration: Callable[..., Migration]) -> None:
    """Another version comes between read and write: it keeps its own tags."""
    client = connect_s3(moto)
    with fresh_buckets(moto) as buckets:
        migration = prepare(make_migration(buckets, buckets))
        client.put_bucket_versioning(Bucket=buckets.production, VersioningConfiguration={"Status": "Enabled"})
        key = add(migration, 1, "t1", {"owner": "me"})
        assert run(migration) == {"migrated": 1}
        assert migration.production.tags(key) == {"owner": "me", "tier": "cold", "tenant": "t1"}
        for version in client.list_object_versions(Bucket=buckets.production)["Versions"]:
            client.delete_object(Bucket=buckets.production, Key=key, VersionId=version["VersionId"])
        remove_bucket(client, buckets.production)


def test_what_a_tag_meets_is_mapped_as_everywhere(log: RequestLog, logged_migration: Migration) -> None:
    migration = prepare(logged_migration)
    for number in range(4):
        add(migration, number, f"t{number}", {})

    def writes(number: int) -> Callable[[LoggedRequest], bool]:
        return lambda request: request.method == "PUT" and request.key == f"{TO}{number}.png"

    with (
        log.refusing(writes(0), 403, "AccessDenied"),
        log.refusing(writes(1), 409, "OperationAborted"),
        log.refusing(writes(2), 400, "MalformedXML"),
    ):
        migration.enqueue(queue="tag")
        migration.work("tag")
    assert migration.verdicts() == ["RETRY"]
    assert outcomes(migration, "tag") == {"migrated": 1, "failed": 3}
    assert migration.failure_of(0)[1] == "PutObjectTagging production: AccessDenied"
    assert migration.failure_of(1)[1] == "PutObjectTagging production: OperationAborted"
    assert migration.failure_of(2)[1] == "PutObjectTagging production: MalformedXML"
    migration.make_due()
    migration.work("tag")
    assert outcomes(migration, "tag") == {"migrated": 4}
    migration.check_balance()


def test_a_right_that_is_gone_costs_no_attempt(log: RequestLog, logged_migration: Migration) -> None:
    migration = prepare(logged_migration)
    add(migration, 1, "t1", {})
    migration.enqueue(queue="tag")
    with log.refusing(lambda request: request.method == "PUT", 403, "AccessDenied"):
        migration.work("tag")
    assert "RELEASED" in migration.verdicts()
    (error,) = {attempt["error"] for attempt in migration.attempts()}
    assert "refuses PutObjectTagging for any key" in error
    assert migration.batch()["status"] == "INIT"


def test_a_server_without_tags_is_a_failure_of_each_entry(make_migration: Callable[..., Migration]) -> None:
    with running_fakes(Deviations(), Deviations(knows_tags=False)) as (usual, server), fresh_buckets(usual) as buckets:
        migration = prepare(make_migration(buckets, buckets))
        migration.reach_through(server.endpoint_url)
        add(migration, 1, "t1", {})
        assert run(migration) == {"failed": 1}
        assert migration.failure_of(1)[2].endswith("TagsUnknown: the production server knows no tags")


def test_a_server_that_loses_tags_is_noticed(make_migration: Callable[..., Migration]) -> None:
    with running_fakes(Deviations(puts_tags=False)) as (server,), fresh_buckets(server) as buckets:
        migration = prepare(make_migration(buckets, buckets))
        for number in range(3):
            add(migration, number, "t1", {})
        migration.enqueue(queue="tag")
        migration.work("tag")
        assert outcomes(migration, "tag") == {"failed": 3}
        assert "TagsLost" in migration.failure_of(1)[2]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "`set` has 0 tags: write 1 to 10"),
        ({"set": {f"t{number}": "a" for number in range(11)}}, "`set` has 11 tags"),
        ({"set": {"tier!": "a"}}, "the tag 'tier!' of `set` has '!' in its name"),
        ({"set": {"tier": "a,b"}}, "the tag 'tier' of `set` would have ',' in its value"),
        ({"set": {"tier": {"column": ""}}}, "the tag 'tier' of `set` names no column"),
        ({"set": {"tier": {"colum": "a"}}}, "colum"),
        ({"set": {"tier": 3}}, "write text in quotes or a table"),
        ({"set": {"tier": "a"}, "where": "true; drop"}, "the `where` has a semicolon"),
        ({"set": PER_TENANT, "of": "s3://production/"}, "`of` names s3://production/, whose objects have no rows"),
        ({"set": {"tier": "a"}, "where": "true", "of": "s3://production/"}, "`where` can only be there for"),
        ({"set": PER_TENANT}, "the objects of old/\\* have no rows: a column in `set` can only be there for"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_with_the_next_step(
    site: Migration, settings: dict[str, Any], words: str
) -> None:
    site.plan["objects"] = [{"prefix": "old/"}]
    site.plan["queue"]["tag"] = settings
    with pytest.raises(PlanError, match=words) as caught:
        site.enqueue(queue="tag")
    assert "[queue.tag]" in str(caught.value) or "queue.tag" in str(caught.value)
    assert site.batches() == []


def test_rows_are_named_apart_from_objects_without_rows(site: Migration) -> None:
    site.plan["objects"] = [{"prefix": "old/"}]
    site.plan["queue"]["tag"]["of"] = "public.avatars.path"
    key = add(site, 1, "t1", {})
    assert run(site) == {"migrated": 1}
    assert site.production.tags(key) == {"tier": "cold", "tenant": "t1"}


def test_a_chain_that_leads_to_tag_needs_its_settings(site: Migration) -> None:
    site.plan["queue"] = {"migrate": {"then": ["tag"]}}
    with pytest.raises(PlanError, match=re.escape("In [queue.tag] of the plan avatars, `set` has 0 tags")):
        site.enqueue()


def test_a_chain_hands_on_only_what_the_next_queue_is_of(site: Migration) -> None:
    """Neither the rows of another table, which has no such column, nor objects without rows."""
    site.execute("create table public.banners (id bigint primary key, path text)")
    site.plan["entries"].append({**site.plan["entries"][0], "table": "public.banners", "name": "banners"})
    site.plan["objects"] = [{"prefix": "old/", "to": "new/"}]
    site.plan["queue"] = {"migrate": {"then": ["tag"]}, "tag": {"of": "public.avatars.path", "set": PER_TENANT}}
    for key in (f"{FROM}1.png", f"{FROM}2.png", "old/3.png"):
        site.legacy.put(key, b"body")
    site.execute("insert into public.avatars values (1, %s, 't1')", (f"{FROM}1.png",))
    site.execute("insert into public.banners values (2, %s)", (f"{FROM}2.png",))
    site.enqueue()
    site.work("migrate", "tag")
    assert outcomes(site) == {"migrated": 3}
    assert outcomes(site, "tag") == {"migrated": 1}
    assert site.statuses() == {"DONE"}
    site.check_balance()
    assert site.production.tags(f"{TO}1.png") == {"tier": "cold", "tenant": "t1"}
    assert site.production.tags(f"{TO}2.png") == site.production.tags("new/3.png") == {}


def test_what_only_rows_can_tell_is_not_left_out_for_objects_without_rows(site: Migration) -> None:
    """Another queue hands on a prefix of a bucket, which `of` does not name."""
    site.production.put("cold/1.png", b"body")
    site.enqueue(queue="tag")
    site.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts) "
        """select id, 'tag', '{"entries": "s3://production/cold/", "objects": "range", "first": "cold/", "last": null,
        "size": 10, "side": "production", "prefix": "cold/"}', 1, 3 from rowferry.migration"""
    )
    site.work("tag")
    assert "RELEASED" in site.verdicts()
    assert "has no rows: name the [[entries]] that are meant in `of` of [queue.tag]" in site.attempts()[0]["error"]
    assert site.production.tags("cold/1.png") == {}


def test_an_object_that_vanishes_after_it_was_listed_is_deleted(faked: tuple[Migration, FakeAddress]) -> None:
    migration, server = faked
    migration.plan["entries"] = []
    migration.plan["queue"]["tag"] = {"of": "s3://production/cold/", "set": {"tier": "cold"}}
    for number in range(3):
        migration.production.put(f"cold/{number}", b"body")
    bucket = server.fake.store.bucket(migration.production.bucket)

    def vanish(request: Any) -> None:
        if request.operation == "GetObjectTagging" and request.key == "cold/1":
            bucket.remove(request.key)

    server.fake.before = vanish
    assert run(migration) == {"migrated": 2, "deleted": 1}
    (failure,) = migration.failures()
    assert failure["error"] == "the production object was deleted after it was listed"
