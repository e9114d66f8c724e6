"""What `tag` meets at servers: refusals, missing rights, no tags at all, objects that vanish."""

from collections.abc import Callable
from typing import Any

from rowferry_lab.servers.s3_servers import S3Server
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.entries.tagged_rows import add, faked_site, prepare, run, versioned_buckets
from support.s3.buckets import fresh_buckets
from support.s3.deviations import Deviations
from support.s3.fake_s3 import running_fakes
from support.s3.request_log import LoggedRequest, RequestLog, logged


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
        assert run(migration) == {"migrated": 1, "failed": 3}
    assert migration.verdicts() == ["RETRY"]
    assert migration.failure_of(0)[1] == "PutObjectTagging production: AccessDenied"
    assert migration.failure_of(1)[1] == "PutObjectTagging production: OperationAborted"
    assert migration.failure_of(2)[1] == "PutObjectTagging production: MalformedXML"
    assert migration.work_again("tag") == {"migrated": 4}
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


def test_a_server_that_loses_tags_is_noticed(make_migration: Callable[..., Migration]) -> None:
    with running_fakes(Deviations(puts_tags=False)) as (server,), fresh_buckets(server) as buckets:
        migration = prepare(make_migration(buckets, buckets))
        for number in range(3):
            add(migration, number, "t1", {})
        assert run(migration) == {"failed": 3}
        assert "TagsLost" in migration.failure_of(1)[2]


def test_an_object_that_vanishes_after_it_was_listed_is_deleted(make_migration: Callable[..., Migration]) -> None:
    with faked_site(make_migration) as (migration, server):
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


def test_a_right_to_versions_that_is_gone_is_held_against_the_bucket(
    moto: S3Server, make_migration: Callable[..., Migration]
) -> None:
    """No entry fails for it, and the message names the right that is missing."""
    with logged(moto.endpoint_url) as log, versioned_buckets(moto) as buckets:
        migration = prepare(make_migration(buckets, buckets))
        migration.reach_through(log.endpoint_url)
        keys = [add(migration, number, "t1", {"owner": "me"}) for number in range(3)]
        migration.enqueue(queue="tag")
        with log.refusing(lambda seen: seen.method == "PUT" and "versionId" in seen.query, 403, "AccessDenied"):
            migration.work("tag")
        assert set(migration.verdicts()) == {"RELEASED"}
        (error,) = {attempt["error"] for attempt in migration.attempts()}
        assert "refuses PutObjectVersionTagging for any key" in error
        assert migration.batch()["status"] == "INIT"
        assert [migration.production.tags(key) for key in keys] == [{"owner": "me"}] * 3


def test_one_version_that_may_not_be_tagged_is_its_entrys_failure(
    moto: S3Server, make_migration: Callable[..., Migration]
) -> None:
    with logged(moto.endpoint_url) as log, versioned_buckets(moto) as buckets:
        migration = prepare(make_migration(buckets, buckets))
        migration.reach_through(log.endpoint_url)
        keys = [add(migration, number, "t1", {}) for number in range(3)]
        with log.refusing(lambda seen: seen.method == "PUT" and seen.key == keys[0], 403, "AccessDenied"):
            assert run(migration) == {"migrated": 2, "failed": 1}
        assert migration.failure_of(0)[1] == "PutObjectVersionTagging production: AccessDenied"
