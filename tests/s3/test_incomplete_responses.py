"""A 200 alone moves no row: an answer counts only when it says what an S3 server says."""

from collections.abc import Callable

import pytest

from rowferry.errors import ObjectDamaged, ObjectRejected, ServerFault
from rowferry.keys import StandingObject
from rowferry.plan import OnConflict
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_queues.verify.perform import VerifyOptions, verify_object
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.multipart.completion import Large
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.multipart.streamed_parts import StreamedParts
from rowferry_worker.multipart.upload import send_in_parts
from rowferry_worker.objects.conditional_writes import ConditionalWriteSupport, WriteGuard
from support.entries.migration import Migration
from support.s3.buckets import Buckets
from support.s3.copies import NEW, OLD, copy_once, fake_with, options_of
from support.s3.fake_buckets import FakeBuckets, changed, headers_of, refuse, stored
from support.s3.request_log import logged
from support.s3.stand_in import StandIn, answer

PAGE = b"<html>ETag please log in</html>"
LOGIN_PAGE = Response(200, {"content-type": "text/html", "content-length": str(len(PAGE))}, PAGE)


def serve_page_from_file(request: Request) -> Response | None:
    """Response as a web server does that knows one file and reading only."""
    headers = {**LOGIN_PAGE.headers, "etag": '"65f0a1b2-1e"', "last-modified": "Tue, 12 Mar 2024 10:00:00 GMT"}
    if request.method == "HEAD":
        return Response(200, headers)
    return Response(200, headers, PAGE) if request.operation == "GetObject" else refuse(405, "")


@pytest.mark.parametrize("transfer", ["server", "stream"])
def test_a_login_page_answered_200_moves_no_row(
    transfer: str, buckets: Buckets, make_migration: Callable[..., Migration]
) -> None:
    """As a firewall, a captive portal or a CDN answers what it does not let through."""
    migration = make_migration(buckets, buckets)
    migration.plan["migration"]["transfer"] = transfer
    with logged(buckets.server.endpoint_url) as log:
        migration.reach_through(log.endpoint_url)
        migration.fill(5)
        migration.enqueue()
        page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE)
        with log.answering(lambda seen: seen.writes_object, page):
            migration.work()
    assert migration.counts() == {"failed": 5}
    assert migration.production.listing() == {}
    assert set(migration.rows().values()) == {f"image/u{number}/me.png" for number in range(1, 6)}


def test_a_login_page_before_both_sides_moves_no_row(migration: Migration) -> None:
    """Even where it answers HEAD and GET alike: the same page twice is no object that was kept."""
    migration.fill(3)
    with StandIn(answer(200, PAGE, Content_Type="text/html")) as stand_in:
        migration.plan["migration"]["transfer"] = "stream"
        migration.reach_through(stand_in.endpoint_url)
        migration.enqueue()
        migration.work()
    assert "migrated" not in migration.counts()
    assert "kept" not in migration.counts()
    assert set(migration.rows().values()) == {f"image/u{number}/me.png" for number in range(1, 4)}


@pytest.mark.parametrize("on_conflict", ["fail", "keep"])
@pytest.mark.parametrize("method", [ServerCopy("legacy"), StreamCopy()], ids=["server", "stream"])
def test_a_web_server_that_has_the_same_page_for_every_key_moves_no_row(
    method: CopyMethod, on_conflict: OnConflict
) -> None:
    """One that serves a file tells its size and an ETag, and sends ranges of it: HEAD and GET look like S3's."""
    fake = fake_with()
    fake.interfere = serve_page_from_file
    with pytest.raises(ServerFault, match="NoS3Server"):
        copy_once(fake, options_of(method, on_conflict=on_conflict))
    with pytest.raises(ServerFault, match="NoS3Server"):
        fake.run(verify_object(fake.s3, options_of(method), StandingObject(NEW, OLD), VerifyOptions()))


def test_the_page_of_a_web_server_is_not_written_for_an_object() -> None:
    fake = fake_with()
    fake.interfere = lambda request: serve_page_from_file(request) if request.bucket == "legacy" else None
    with pytest.raises(ServerFault, match="NoS3Server"):
        copy_once(fake, options_of(StreamCopy()))
    assert fake.production == {}


def test_an_object_with_an_etag_of_another_kind_is_asked_for_no_more_than_that() -> None:
    fake = fake_with()
    fake.legacy[OLD] = changed(fake.legacy[OLD], etag="no-digest")
    assert copy_once(fake, options_of(StreamCopy(), "supported")).outcome == "migrated"
    assert fake.operations == ["GetObject legacy", "HeadObject legacy", "PutObject production"]


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("method", [ServerCopy("legacy"), StreamCopy()], ids=["server", "stream"])
def test_a_write_that_is_answered_with_a_page_is_none(method: CopyMethod, is_file: bool) -> None:
    fake = fake_with()
    page = Response(200, {**LOGIN_PAGE.headers, **({"etag": '"65f0a1b2-1e"'} if is_file else {})}, PAGE)
    fake.interfere = lambda request: page if request.operation == method.operation else None
    with pytest.raises(ServerFault, match="UnreadableResponse"):
        copy_once(fake, options_of(method))


def test_a_page_is_not_read_for_an_object() -> None:
    fake = fake_with()
    fake.interfere = lambda request: LOGIN_PAGE if request.operation == "GetObject" else None
    with pytest.raises(ServerFault, match="NoETag"):
        copy_once(fake, options_of(StreamCopy()))
    assert fake.production == {}


# Sizes


def without(name: str, side: str, fake: FakeBuckets) -> Callable[[Request], Response | None]:
    def interfere(request: Request) -> Response | None:
        if request.operation != "HeadObject" or request.bucket != side:
            return None
        found = fake.store.buckets[request.bucket].find(request.key)
        if found is None:
            return refuse(404, "NoSuchKey")
        return Response(200, {n: v for n, v in headers_of(found).items() if n != name})

    return interfere


@pytest.mark.parametrize("side", ["legacy", "production"])
@pytest.mark.parametrize(("name", "words"), [("content-length", "NoContentLength"), ("etag", "NoETag")])
def test_a_head_that_leaves_something_out_proves_no_two_objects_equal(name: str, words: str, side: str) -> None:
    """Two different objects of unknown size were taken for equal: the row moved to another object."""
    fake = fake_with()
    fake.legacy[OLD] = changed(fake.legacy[OLD], etag="W/legacy")
    fake.production[NEW] = stored(b"different", etag="W/production")
    for one in ("legacy", "production"):
        fake.interfere = without(name, one, fake)
        if one == side:
            break
    with pytest.raises(ServerFault, match=words) as caught:
        copy_once(fake, options_of(ServerCopy("legacy")))
    assert caught.value.where == f"HeadObject {side}"
    with pytest.raises(ServerFault, match=words):
        fake.run(verify_object(fake.s3, options_of(ServerCopy("legacy")), StandingObject(NEW, OLD), VerifyOptions()))


@pytest.mark.parametrize("method", [ServerCopy("legacy", 4), StreamCopy(threshold_bytes=4)], ids=["server", "stream"])
def test_a_large_object_of_unknown_size_does_not_arrive_empty(method: CopyMethod) -> None:
    fake = fake_with(b"0123456789")
    fake.interfere = without("content-length", "legacy", fake)
    with pytest.raises(ServerFault, match="NoContentLength"):
        copy_once(fake, options_of(method))
    assert fake.production == {}


def test_an_upload_of_no_parts_is_refused() -> None:
    large = Large(OLD, Response(200, {"content-length": "0", "etag": '"e"'}), NEW)
    fake = FakeBuckets()
    guard, parts = WriteGuard(fake.s3, ConditionalWriteSupport("new"), NEW), StreamedParts(fake.s3, large)
    sending = send_in_parts(fake.s3, large, [], parts, part_bytes=4, guard=guard, large_objects=LargeObjects())
    with pytest.raises(ObjectRejected, match="EmptyUpload"):
        fake.run(sending)


# Ranges

RANGES = {
    "of another part": {"content-range": "bytes 0-3/10"},
    "of another object": {"content-range": "bytes 4-7/11"},
    "in other units": {"content-range": "items 4-7/10"},
    "beyond all numbers": {"content-range": f"bytes 4-7/{'9' * 5000}"},
    "with a raised two": {"content-range": "bytes 4-7/²"},
    "missing": {},
}


def answer_ranges(fake: FakeBuckets, headers: dict[str, str]) -> None:
    def interfere(request: Request) -> Response | None:
        is_second = request.operation == "GetObject" and request.header(b"range") == "bytes=4-7"
        return Response(206, {"etag": f'"{fake.legacy[OLD].etag}"', **headers}, b"0123") if is_second else None

    fake.interfere = interfere


@pytest.mark.parametrize("kind", RANGES)
def test_a_part_with_the_bytes_of_another_is_refused(kind: str) -> None:
    """The legacy object's ETag is no MD5, so the bytes alone would not tell."""
    fake = fake_with(b"0123456789")
    fake.legacy[OLD] = changed(fake.legacy[OLD], etag=f"{'a' * 32}-2")
    answer_ranges(fake, RANGES[kind])
    with pytest.raises(ObjectDamaged, match="WrongRange"):
        copy_once(fake, options_of(StreamCopy(threshold_bytes=4)))
    assert (fake.production, fake.uploads) == ({}, {})


def test_a_server_that_sends_the_whole_for_a_part_is_refused() -> None:
    fake = fake_with(b"0123456789")
    fake.interfere = lambda request: (
        Response(200, headers_of(fake.legacy[OLD]), b"0123456789") if request.header(b"range") else None
    )
    with pytest.raises(ObjectDamaged, match="WrongRange"):
        copy_once(fake, options_of(StreamCopy(threshold_bytes=4)))


def test_an_object_is_not_compared_by_the_bytes_of_another_range() -> None:
    fake = fake_with(b"0123456789")
    fake.production[NEW] = stored(b"0123456789", etag=f"{'e' * 32}-2")
    fake.interfere = lambda request: (
        Response(206, {"content-range": "bytes 0-3/10"}, b"0123") if request.header(b"range") else None
    )
    with pytest.raises(ObjectDamaged, match="WrongRange"):
        copy_once(fake, options_of(ServerCopy("legacy")))


def test_a_range_without_an_etag_may_be_of_another_object() -> None:
    """Neither the pin nor the answer tells, and the ETag that was seen is no MD5: two objects would be patched."""
    fake = fake_with(b"0123456789")
    fake.deviate(read_if_match=False)
    fake.legacy[OLD] = changed(fake.legacy[OLD], etag=f"{'a' * 32}-2")

    def interfere(request: Request) -> Response | None:
        if request.operation != "GetObject" or (span := request.header(b"range")) is None:
            return None
        first, last = (int(each) for each in span.removeprefix("bytes=").split("-"))
        body = (b"0123456789" if first == 0 else b"9876543210")[first : last + 1]
        return Response(206, {"content-range": f"bytes {first}-{last}/10"}, body)

    fake.interfere = interfere
    with pytest.raises(ServerFault, match="NoETag"):
        copy_once(fake, options_of(StreamCopy(threshold_bytes=4)))
    assert (fake.production, fake.uploads) == ({}, {})


def test_an_equal_etag_that_is_no_digest_is_not_believed() -> None:
    """Web servers make them of time and size."""
    fake = fake_with(b"abc")
    fake.legacy[OLD] = changed(fake.legacy[OLD], etag="W/65f-3")
    fake.production[NEW] = stored(b"abd", etag="W/65f-3")
    assert copy_once(fake, options_of(ServerCopy("legacy"))).outcome == "conflict"
