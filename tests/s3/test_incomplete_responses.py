"""A 200 alone moves no row: an answer counts only when it says what an S3 server says."""

from collections.abc import Callable

import pytest

from rowferry.errors import ObjectDamaged, ObjectRejected, ServerFault
from rowferry.keys import StandingObject
from rowferry.plan import OnConflict
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.store import StoredObject
from rowferry_queues.verify.perform import VerifyOptions, verify_object
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.multipart.completion import Large
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.multipart.streamed_parts import StreamedParts
from rowferry_worker.multipart.upload import send_in_parts
from rowferry_worker.objects.conditional_writes import ConditionalWriteSupport
from rowferry_worker.objects.intents import Protect, Target
from support.s3.copies import NEW, OLD, copy_once, fake_with, options_of
from support.s3.fake_buckets import FakeBuckets, changed, headers_of, refuse, stored

Interfere = Callable[[Request], Response | None]
"""Returns what is said in the place of the server."""
PAGE = b"<html>ETag please log in</html>"
LOGIN_PAGE = Response(200, {"content-type": "text/html", "content-length": str(len(PAGE))}, PAGE)


def serve_page_from_file(request: Request) -> Response | None:
    """Response as a web server does that knows one file and reading only."""
    headers = {**LOGIN_PAGE.headers, "etag": '"65f0a1b2-1e"', "last-modified": "Tue, 12 Mar 2024 10:00:00 GMT"}
    if request.method == "HEAD":
        return Response(200, headers)
    return Response(200, headers, PAGE) if request.operation == "GetObject" else refuse(405, "")


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


def test_an_object_with_an_etag_of_another_kind_is_asked_for_no_more_than_that() -> None:
    fake = fake_with()
    fake.legacy[OLD] = changed(fake.legacy[OLD], etag="no-digest")
    assert copy_once(fake, options_of(StreamCopy(), "supported")).outcome == "migrated"
    assert fake.operations == ["GetObject legacy", "HeadObject legacy", "PutObject production"]


def without(name: str, side: str, fake: FakeBuckets) -> Interfere:
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


def test_an_upload_of_no_parts_is_refused() -> None:
    large = Large(OLD, Response(200, {"content-length": "0", "etag": '"e"'}), NEW)
    fake = FakeBuckets()
    target, parts = Target(fake.s3, ConditionalWriteSupport("new"), NEW), StreamedParts(fake.s3, large)
    sending = send_in_parts(target, Protect(), large, [], parts, part_bytes=4, large_objects=LargeObjects())
    with pytest.raises(ObjectRejected, match="EmptyUpload"):
        fake.run(sending)


TEN = stored(b"0123456789")
OF_PARTS = changed(TEN, etag=f"{'a' * 32}-2")
"""An object whose ETag is no MD5, so that the bytes alone would not tell."""
SIZELESS = Response(200, {name: value for name, value in headers_of(TEN).items() if name != "content-length"})
CUT = Response(200, {}, b'<?xml version="1.0" encoding="UTF-8"?>\n')
"""It may have been about to tell an error."""
FILE_PAGE = Response(200, {**LOGIN_PAGE.headers, "etag": '"65f0a1b2-1e"'}, PAGE)
SERVER, STREAM = ServerCopy("legacy"), StreamCopy()
SERVER_PARTS, STREAM_PARTS = ServerCopy("legacy", 4), StreamCopy(threshold_bytes=4)


def answering(response: Response, operation: str, span: str | None = None) -> Interfere:
    """Respond so to each request of an operation, or to those for a range alone."""

    def interfere(request: Request) -> Response | None:
        is_meant = request.operation == operation and span in {None, request.header(b"range")}
        return response if is_meant else None

    return interfere


def second_part(**headers: str) -> Interfere:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return answering(Response(206, {"etag": f'"{OF_PARTS.etag}"', **named}, b"0123"), "GetObject", "bytes=4-7")


def page_of_legacy(request: Request) -> Response | None:
    return serve_page_from_file(request) if request.bucket == "legacy" else None


def whole_for_a_part(request: Request) -> Response | None:
    return Response(200, headers_of(TEN), b"0123456789") if request.header(b"range") else None


NOTHING_COPIED: dict[str, tuple[CopyMethod, StoredObject, Interfere, str]] = {
    "the page of a web server": (STREAM, TEN, page_of_legacy, "NoS3Server"),
    "a login page for an object": (STREAM, TEN, answering(LOGIN_PAGE, "GetObject"), "NoETag"),
    "a login page for a copy": (SERVER, TEN, answering(LOGIN_PAGE, "CopyObject"), "UnreadableResponse"),
    "a login page for a put": (STREAM, TEN, answering(LOGIN_PAGE, "PutObject"), "UnreadableResponse"),
    "the page of a file for a copy": (SERVER, TEN, answering(FILE_PAGE, "CopyObject"), "UnreadableResponse"),
    "the page of a file for a put": (STREAM, TEN, answering(FILE_PAGE, "PutObject"), "UnreadableResponse"),
    "no size of a large copy": (SERVER_PARTS, TEN, answering(SIZELESS, "HeadObject"), "NoContentLength"),
    "no size of a large stream": (STREAM_PARTS, TEN, answering(SIZELESS, "HeadObject"), "NoContentLength"),
    "a cut copy": (SERVER, TEN, answering(CUT, "CopyObject"), "UnreadableResponse"),
    "a cut copy of a part": (SERVER_PARTS, TEN, answering(CUT, "UploadPartCopy"), "UnreadableResponse"),
    "a cut completion of copies": (SERVER_PARTS, TEN, answering(CUT, "CompleteMultipartUpload"), "UnreadableResponse"),
    "a cut part": (STREAM_PARTS, TEN, answering(CUT, "UploadPart"), "UnreadableResponse"),
    "a cut completion": (STREAM_PARTS, TEN, answering(CUT, "CompleteMultipartUpload"), "UnreadableResponse"),
    "a part without a range": (STREAM_PARTS, OF_PARTS, second_part(), "WrongRange"),
    "the whole for a part": (STREAM_PARTS, TEN, whole_for_a_part, "WrongRange"),
}
"""How it is copied, what, what the server says instead, and the code of the error."""


def test_a_response_that_does_not_say_what_s3_says_copies_nothing(subtests: pytest.Subtests) -> None:
    for name, (method, legacy, interfere, code) in NOTHING_COPIED.items():
        fake = FakeBuckets(legacy={OLD: legacy})
        fake.interfere = interfere
        with subtests.test(name):
            with pytest.raises(ObjectDamaged if code == "WrongRange" else ServerFault, match=code):
                copy_once(fake, options_of(method))
            assert fake.production == {}
            # The server may still be at work on what it was told to complete.
            assert bool(fake.uploads) == name.startswith("a cut completion")


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
