"""A check writes a probe to learn what a server keeps and honours, removes it, and says what it could not remove."""

import pytest
from botocore.exceptions import ClientError

from rowferry_enqueue.checks.buckets.probe import HEADERS, METADATA, find_lost
from support.entries.checks import check
from support.entries.entry_table import FROM
from support.entries.migration import Migration
from support.processes.cli import well
from support.s3.listing_page import http
from support.s3.objects import ObjectSide
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


def is_honoured(side: ObjectSide, operation: str) -> bool:
    """Return whether the server refuses to write under `If-None-Match: *` what is there already."""
    target = {"Bucket": side.bucket, "Key": "target"}
    side.put("target", b"here already")
    try:
        if operation == "PutObject":
            side.put("target", b"again", IfNoneMatch="*")
        elif operation == "CopyObject":
            side.client.copy_object(**target, CopySource=target, IfNoneMatch="*", MetadataDirective="REPLACE")
        else:
            target["UploadId"] = side.client.create_multipart_upload(**target)["UploadId"]
            etag = side.client.upload_part(**target, PartNumber=1, Body=b"part")["ETag"]
            parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
            side.client.complete_multipart_upload(**target, MultipartUpload=parts, IfNoneMatch="*")
    except ClientError:
        return True
    return False


def test_it_tells_of_each_operation_whether_a_condition_is_honoured(migration: Migration) -> None:
    migration.fill(1)
    (words,) = notes(migration, "If-None-Match, by operation")
    for operation in ("PutObject", "CopyObject", "CompleteMultipartUpload"):
        end = "honoured" if is_honoured(migration.production, operation) else "ignored"
        assert f"{operation} {end}" in words
    assert "what another writer stores at its production key between the two is replaced" in words


def test_a_condition_that_is_refused_is_told(logged_migration: Migration, log: RequestLog) -> None:
    logged_migration.fill(1)
    for operation, method in (("CopyObject", "PUT"), ("CompleteMultipartUpload", "POST")):
        is_meant = lambda seen, method=method: seen.method == method and "if-none-match" in seen.headers  # noqa: E731
        with log.refusing(is_meant, 501, "NotImplemented"):
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
    same = {"expires": "Thu, 1 Jan 2099 00:00:00 GMT", "content-type": "text/x-rowferry; a=b"}
    assert find_lost(given, {**came, **same}) == []
    del came["x-amz-meta-with_underscore"], came["expires"]
    came["cache-control"] = "no-store"
    assert find_lost(given, came) == ["Cache-Control", "Expires", "with_underscore"]


def test_tags_and_uploads_that_a_server_does_not_take_or_drops_are_a_note(
    logged_migration: Migration, log: RequestLog
) -> None:
    logged_migration.fill(1)
    with log.refusing(lambda seen: "x-amz-tagging" in seen.headers, 501, "NotImplemented"):
        (words,) = notes(logged_migration, "does not come back as written after PutObject")
    assert "tags (NotImplemented" in words
    with log.answering(lambda seen: "tagging" in seen.query, http(b"<Tagging><TagSet></TagSet></Tagging>")):
        told = notes(logged_migration, "does not come back as written")
    assert len(told) == 3, told
    assert all(words.endswith(": tags ") for words in told), told
    with log.refusing(lambda seen: "uploads" in seen.query, 501, "NotImplemented"):
        assert notes(logged_migration, "parts cannot be written (NotImplemented")


def test_objects_that_a_server_without_parts_cannot_take_are_counted(
    logged_migration: Migration, log: RequestLog
) -> None:
    most = 5 * 1024**2
    logged_migration.plan["migration"]["multipart_threshold_bytes"] = most
    logged_migration.fill(2)
    for level, words in (
        ("note", "none of 2 sampled objects is"),
        ("part", "1 of 3 sampled objects are larger than this server takes in one piece (5 MiB)"),
        ("problem", "1 of 1 sampled object is larger"),
    ):
        if level == "part":
            logged_migration.add(3, "u3/me.png", b"x" * (most + 1))
        if level == "problem":
            logged_migration.legacy.delete(f"{FROM}u1/me.png")
            logged_migration.legacy.delete(f"{FROM}u2/me.png")
        with log.refusing(lambda seen: "uploads" in seen.query, 501, "NotImplemented"):
            (found,) = [each for each in check(logged_migration) if "parts cannot be written" in each.what]
        assert (found.level, words in found.what, "multipart_threshold_bytes" in found.remedy) == (level, True, True)


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


def test_a_probe_is_removed_where_it_may_have_been_written_and_only_there(
    logged_migration: Migration, log: RequestLog
) -> None:
    logged_migration.fill(1)
    with log.refusing(lambda seen: seen.method in {"PUT", "DELETE"}, 403, "AccessDenied"):
        told = notes(logged_migration, "")
    assert not [words for words in told if "by hand" in words]
    assert [words for words in told if "s3:PutObject" in words]
    assert not [seen for seen in log.seen if is_delete(seen)]
    no = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
    with log.answering(lambda seen: seen.writes_object and seen.key.endswith("-copy"), no):
        check(logged_migration)
    assert any(seen.key.endswith("-copy") for seen in log.seen if is_delete(seen))


@pytest.mark.parametrize("command", ["migrate --dry-run", "migrate --dry-run --no-objects"])
def test_a_dry_run_writes_nothing_at_all(logged_migration: Migration, log: RequestLog, command: str) -> None:
    logged_migration.fill(3).write_plan()
    done = well(logged_migration.run_here(*command.split()))
    assert [seen for seen in log.seen if seen.writes] == []
    assert "not checked, since a check would write" in done.stdout
    assert "Dry run: nothing was written." in done.stdout
