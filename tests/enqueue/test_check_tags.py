"""`rowferry check` tags a probe object where a queue of the plan tags, and says what to do where that cannot be."""

import re
from collections.abc import Callable, Iterator, Mapping

import pytest
from psycopg import sql

from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries
from rowferry.errors import UsageError
from rowferry.queues import find_queue
from rowferry_enqueue.checks.queues.columns import check_queue_rows
from rowferry_lab.servers.s3_servers import S3Server
from rowferry_queues.tag.perform import tag_object
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.objects.requests import ObjectRequests
from support.entries.checks import check, problems
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.postgres.roles import new_role
from support.s3.buckets import Buckets, fresh_buckets
from support.s3.deviations import Deviations
from support.s3.fake_s3 import running_fakes
from support.s3.request_log import LoggedRequest, RequestLog
from support.s3.servers import running_server
from support.s3.stand_in import error_body

SETTINGS = {"set": {"tier": "cold", "tenant": {"column": "tenant_id"}}}


def prepare(migration: Migration) -> Migration:
    migration.execute("alter table public.avatars add tenant_id text")
    migration.plan["queue"] = {"tag": SETTINGS}
    return migration


def words(table: EntryTable, level: str, part: str = "tag") -> list[str]:
    return [each.what for each in check(table) if each.level == level and part in each.what]


def test_objects_can_be_tagged_and_no_probe_is_left_where_a_queue_of_the_plan_tags(any_migration: Migration) -> None:
    assert words(any_migration, "fine", "can be tagged") == []
    prepare(any_migration)
    assert problems(any_migration) == []
    bucket = any_migration.production.bucket
    assert f"objects of the production bucket {bucket} can be tagged" in words(any_migration, "fine")
    found = [each.what for each in check(any_migration, may_write=False)]
    assert any("whether" in each and "takes tags" in each for each in found)
    assert any_migration.production.listing() == {}


def test_each_version_is_tagged_by_itself(moto: S3Server, make_migration: Callable[..., Migration]) -> None:
    with fresh_buckets(moto) as buckets:
        migration = prepare(make_migration(buckets, buckets))
        buckets.client.put_bucket_versioning(Bucket=buckets.production, VersioningConfiguration={"Status": "Enabled"})
        assert problems(migration) == []
        assert words(migration, "fine", "can be tagged") != []


UNTAGGED = (
    (Deviations(knows_tags=False), "knows no tags (NotImplemented"),
    (Deviations(puts_tags=False), "takes tags and does not keep them"),
)


@pytest.mark.parametrize(("deviations", "said"), UNTAGGED)
def test_a_server_without_tags_is_found_with_a_next_step(
    deviations: Deviations, said: str, make_migration: Callable[..., Migration]
) -> None:
    with running_fakes(deviations) as (server,), fresh_buckets(server) as buckets:
        migration = prepare(make_migration(buckets, buckets))
        (finding,) = [each for each in check(migration) if each.level == "problem"]
        assert said in finding.what
        assert finding.remedy == "leave [queue.tag] out of the plan, or use a server that has tags"
        assert migration.production.listing() == {}


@pytest.fixture
def gofakes3() -> Iterator[Buckets]:
    with running_server("gofakes3") as server, fresh_buckets(server) as buckets:
        yield buckets


def test_no_object_is_overwritten_by_its_tags_where_a_server_takes_them_for_it(
    gofakes3: Buckets, make_migration: Callable[..., Migration]
) -> None:
    """gofakes3 answers with the object, here one that looks like a list of tags, and puts what it is sent."""
    body = b"<Tagging><TagSet></TagSet></Tagging>"
    migration = prepare(make_migration(gofakes3, gofakes3))
    migration.production.put("avatar/1.png", body)
    migration.execute("insert into public.avatars values (1, 'avatar/1.png', 't1')")
    assert any("knows no tags" in each for each in problems(migration))
    migration.enqueue(queue="tag")
    migration.work("tag")
    assert migration.counts() == {"failed": 1}
    assert migration.failure_of(1)[2].endswith("TagsUnknown: the production server knows no tags")
    assert migration.production.read("avatar/1.png") == body


def test_a_missing_right_is_named(log: RequestLog, logged_migration: Migration) -> None:
    migration = prepare(logged_migration)
    for method, right in (("GET", "s3:GetObjectTagging"), ("PUT", "s3:PutObjectTagging")):

        def is_of_probe(request: LoggedRequest, method: str = method) -> bool:
            return request.method == method and request.key.endswith("-tags") and "tagging" in request.query

        with log.refusing(is_of_probe, 403, "AccessDenied"):
            (finding,) = [each for each in check(migration) if each.level == "problem"]
        assert finding.remedy == f"give the production credentials {right} there"
        assert "cannot be tagged" in finding.what


def test_the_tags_of_the_plan_are_those_that_are_tried(
    log: RequestLog, logged_migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server decides which characters it takes."""
    migration = prepare(logged_migration)
    migration.plan["queue"]["tag"] = {"set": {"tier": "a,b", "tenant": {"column": "tenant_id"}}}
    tried: list[Mapping[str, str]] = []

    async def tag(s3: ObjectRequests, owner: object, key: str, wanted: Mapping[str, str]) -> CopyResult:
        tried.append(wanted)
        return await tag_object(s3, owner, key, wanted)

    monkeypatch.setattr("rowferry_queues.tag.check.tag_object", tag)
    body = error_body("InvalidTag", "The TagValue you have provided is invalid")
    refusal = f"HTTP/1.1 400 No\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    with log.answering(lambda seen: seen.method == "PUT" and "tagging" in seen.query and "-tags" in seen.key, refusal):
        (finding,) = [each for each in check(migration) if each.level == "problem"]
    assert tried == [{"tier": "a,b"}]
    assert "cannot be tagged: InvalidTag" in finding.what
    assert "or those of [production] or [queue.tag] in the plan" in finding.remedy


UNUSABLE: tuple[tuple[dict[str, object], str], ...] = (
    (
        {"set": {"tenant": {"column": "landlord"}}},
        "the table public.avatars has no column landlord, which the queue tag uses",
    ),
    ({"set": {"tier": "cold"}, "where": "age > 3"}, "the `where` of [queue.tag] cannot be used for public.avatars"),
    ({"set": {"tier": "cold"}, "where": "id"}, "the `where` of [queue.tag] cannot be used for public.avatars"),
)


def test_columns_that_are_not_there_are_found_before_anything_is_enqueued(migration: Migration) -> None:
    prepare(migration)
    for change, said in UNUSABLE:
        migration.plan["queue"]["tag"] = change
        assert any(said in each for each in problems(migration))
        with pytest.raises(UsageError) as caught:
            migration.enqueue(queue="tag")
        assert said.removeprefix("the ") in str(caught.value)
        assert re.search(r"; (correct \[queue\.tag\]|write a condition over .*, and grant)", str(caught.value))
        assert migration.batches() == []


def test_an_enqueuer_need_not_read_what_only_workers_read(migration: Migration) -> None:
    prepare(migration)
    migration.execute("insert into public.avatars values (1, 'avatar/1.png', 't1')")
    with new_role(migration.dsn) as role, connect("check", autocommit=True) as connection:
        filler = sql.Identifier(role)
        migration.execute(sql.SQL("grant select (id, path) on public.avatars to {}").format(filler))
        connection.execute(sql.SQL("set role {}").format(filler))
        spec, (entries,) = find_queue("tag"), migration.read_plan().entries
        queries, settings = EntryQueries.of(connection, entries), spec.read_settings(migration.read_plan())
        assert list(check_queue_rows(connection, queries, spec, settings, as_worker=False)) == []
        assert len(list(check_queue_rows(connection, queries, spec, settings))) == 1
