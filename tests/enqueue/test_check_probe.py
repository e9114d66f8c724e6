"""A check writes a probe to learn what a server keeps and honours, removes it, and says what it could not remove."""

import pytest
from botocore.exceptions import ClientError

from rowferry_enqueue.checks.buckets.probe import HEADERS, METADATA, find_lost
from support.entries.checks import check
from support.entries.migration import Migration
from support.s3.request_log import LoggedRequest, RequestLog


def notes(migration: Migration, words: str, **more: bool) -> list[str]:
    return [f"{finding.what} {finding.remedy}" for finding in check(migration, **more) if words in finding.what]


def is_delete(seen: LoggedRequest) -> bool:
    return seen.method == "DELETE"


def test_it_asks_over_the_wire_that_workers_use(logged_migration: Migration, log: RequestLog) -> None:
    logged_migration.fill(2)
    check(logged_migration)
    agents = {seen.headers["user-agent"].partition("/")[0] for seen in log.seen}
    assert agents == {"rowferry"}


@pytest.mark.parametrize("operation", ["PutObject", "CopyObject", "CompleteMultipartUpload"])
def test_it_tells_of_each_operation_whether_a_condition_is_honoured(migration: Migration, operation: str) -> None:
    migration.fill(1)
    side, target = migration.production, "target"
    side.put(target, b"here already")
    try:
        if operation == "CopyObject":
            source = {"Bucket": side.bucket, "Key": target}
            side.client.copy_object(
                Bucket=side.bucket, Key=target, CopySource=source, IfNoneMatch="*", MetadataDirective="REPLACE"
            )
        elif operation == "PutObject":
            side.put(target, b"again", IfNoneMatch="*")
        else:
            upload = {"Bucket": side.bucket, "Key": target}
            upload["UploadId"] = side.client.create_multipart_upload(**upload)["UploadId"]
            etag = side.client.upload_part(**upload, PartNumber=1, Body=b"part")["ETag"]
            parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
            side.client.complete_multipart_upload(**upload, MultipartUpload=parts, IfNoneMatch="*")
        expected = f"{operation} ignored"
    except ClientError:
        expected = f"{operation} honoured"
    (words,) = notes(migration, "If-None-Match, by operation")
    assert expected in words
    assert "what another writer stores at its production key between the two is replaced" in words


@pytest.mark.parametrize(("operation", "method"), [("CopyObject", "PUT"), ("CompleteMultipartUpload", "POST")])
def test_a_condition_that_is_refused_is_told(
    logged_migration: Migration, log: RequestLog, operation: str, method: str
) -> None:
    logged_migration.fill(1)
    with log.refusing(lambda seen: seen.method == method and "if-none-match" in seen.headers, 501, "NotImplemented"):
        (words,) = notes(logged_migration, "If-None-Match, by operation")
    assert f"{operation} refused (NotImplemented)" in words
    assert logged_migration.production.listing() == {}
    assert logged_migration.production.open_uploads() == []


def test_a_source_that_is_not_pinned_is_told(moto_migration: Migration) -> None:
    moto_migration.fill(1)
    assert notes(moto_migration, "x-amz-copy-source-if-match is ignored by CopyObject")  # by moto


def test_what_does_not_come_back_is_named() -> None:
    given = HEADERS | METADATA
    came = {name.lower(): value for name, value in given.items()}
    assert find_lost(given, came) == []
    assert (
        find_lost(given, {**came, "expires": "Thu, 1 Jan 2099 00:00:00 GMT", "content-type": "text/x-rowferry; a=b"})
        == []
    )
    del came["x-amz-meta-with_underscore"], came["expires"]
    came["cache-control"] = "no-store"
    assert find_lost(given, came) == ["Cache-Control", "Expires", "with_underscore"]


def test_tags_that_a_server_does_not_take_are_a_note(logged_migration: Migration, log: RequestLog) -> None:
    logged_migration.fill(1)
    with log.refusing(lambda seen: "x-amz-tagging" in seen.headers, 501, "NotImplemented"):
        (words,) = notes(logged_migration, "does not come back as written after PutObject")
    assert "tags (NotImplemented" in words


def test_tags_that_a_server_drops_are_a_note(logged_migration: Migration, log: RequestLog) -> None:
    logged_migration.fill(1)
    body = b"<Tagging><TagSet></TagSet></Tagging>"
    empty = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with log.answering(lambda seen: "tagging" in seen.query, empty):
        told = notes(logged_migration, "does not come back as written")
    assert len(told) == 3, told
    assert all(words.endswith(": tags ") for words in told), told


def test_uploads_of_parts_that_a_server_refuses_are_a_note(logged_migration: Migration, log: RequestLog) -> None:
    logged_migration.fill(1)
    with log.refusing(lambda seen: "uploads" in seen.query, 501, "NotImplemented"):
        assert notes(logged_migration, "large objects will fail")


@pytest.mark.by_day("403-AccessDenied")
@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (500, "InternalError"), (400, "SomethingElse")])
def test_a_probe_that_cannot_be_removed_is_named(
    logged_migration: Migration, log: RequestLog, status: int, code: str
) -> None:
    logged_migration.fill(1)
    with log.refusing(is_delete, status, code):
        told = notes(logged_migration, "cannot be removed again")
    left = logged_migration.production.listing()
    assert left
    assert all(any(repr(key) in words and "remove it by hand" in words for words in told) for key in left)


def test_a_probe_that_was_never_written_is_not_to_be_removed(logged_migration: Migration, log: RequestLog) -> None:
    logged_migration.fill(1)
    with log.refusing(lambda seen: seen.method in {"PUT", "DELETE"}, 403, "AccessDenied"):
        findings = check(logged_migration)
    told = [f"{finding.what} {finding.remedy}" for finding in findings]
    assert not [words for words in told if "by hand" in words]
    assert [words for words in told if "s3:PutObject" in words]
    assert not [seen for seen in log.seen if is_delete(seen)]


def test_a_probe_that_may_have_been_written_is_removed(logged_migration: Migration, log: RequestLog) -> None:
    logged_migration.fill(1)
    with log.answering(
        lambda seen: seen.writes_object and seen.key.endswith("-copy"), b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
    ):
        check(logged_migration)
    assert any(seen.key.endswith("-copy") for seen in log.seen if is_delete(seen))


@pytest.mark.parametrize("command", ["migrate --dry-run", "migrate --dry-run --no-objects"])
def test_a_dry_run_writes_nothing_at_all(logged_migration: Migration, log: RequestLog, command: str) -> None:
    logged_migration.fill(3)
    logged_migration.write_plan()
    done = logged_migration.run_here(*command.split())
    assert done.returncode == 0, done.stderr
    assert [seen for seen in log.seen if seen.writes] == []
    assert "not checked, since a check would write" in done.stdout
    assert "Dry run: nothing was written." in done.stdout


def test_the_help_says_what_a_check_writes_and_where(migration: Migration) -> None:
    words = " ".join(migration.run("check", "--help").stdout.split()).replace("- ", "-")
    assert "rowferry-check-" in words
    assert "deletes it again" in words
    assert "change nothing" not in migration.run("--help").stdout
