import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    ObjectDamaged,
    ObjectError,
    ObjectNotFound,
    ObjectRejected,
    PreconditionFailed,
    ServerFault,
    SideFault,
    Throttled,
    TimedOut,
)
from rowferry.s3.errors import classify
from rowferry.s3.responses import Response, read_error, read_page, read_tags, read_text
from support.s3.clients import Result, read

NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


CLASSES: dict[type[ObjectError], str] = {
    ObjectNotFound: "404, 404 NoSuchKey",
    BucketNotFound: "404 NoSuchBucket",
    ObjectRejected: "404 NoSuchTagSet, 403 InvalidObjectState, 409 ObjectParentIsFile, 400 InvalidArgument, "
    "416 InvalidRange, 501 NotImplemented",
    AccessDenied: "403, 401",
    SideFault: "403 SignatureDoesNotMatch, 400 ExpiredToken, 403 InvalidAccessKeyId, 403 RequestTimeTooSkewed, "
    "400 AuthorizationHeaderMalformed, 403 QuotaExceeded, 507 XMinioStorageFull, 507, 403 AccountProblem, "
    "301 PermanentRedirect",
    PreconditionFailed: "412, 412 PreconditionFailed, 409, 409 ConditionalRequestConflict, 304",
    ObjectDamaged: "400 BadDigest",
    TimedOut: "400 RequestTimeout, 408",
    Throttled: "503, 503 SlowDown, 429 TooManyRequests, 400 ThrottlingException",
    ServerFault: "404 NoSuchUpload, 500 InternalError, 502, 504, 0",
}
"""Status and code."""


@pytest.mark.parametrize(
    ("response", "expected"), [(one, kind) for kind, responses in CLASSES.items() for one in responses.split(", ")]
)
def test_an_http_response_has_the_class_that_s3_means(response: str, expected: type[ObjectError]) -> None:
    status, _, code = response.partition(" ")
    assert type(classify(int(status), code, "")) is expected


@given(st.integers(0, 599), st.text(max_size=30), st.text(max_size=30))
def test_whatever_a_server_says_has_a_class_and_a_code(status: int, code: str, message: str) -> None:
    assert classify(status, code, message).code


def test_an_error_is_told_by_its_code_its_words_and_the_name_of_its_request() -> None:
    body = b"<Error><Code>AccessDenied</Code><Message>not &quot;you&quot;</Message><RequestId>1</RequestId></Error>"
    answer = read(403, {}, body)
    assert isinstance(answer.error, AccessDenied)
    assert str(answer.error) == 'AccessDenied: not "you"'
    assert str(read(403, {"x-amz-request-id": "4F" * 8}, body).error) == f"{answer.error} (request {'4F' * 8})"
    assert len(str(read(403, {"x-amz-request-id": "x" * 9999}, body).error)) < 100
    assert str(classify(404, "NoSuchKey", "NoSuchKey")) == "NoSuchKey"
    assert read_error(f"<Error {NAMESPACE}><Code>SlowDown</Code></Error>".encode()) == ("SlowDown", "")


def test_an_etag_loses_its_quotes_and_a_length_is_a_number_or_unknown() -> None:
    assert Result(200, {"etag": '"abc"'}).etag == "abc"
    assert (Result(200).etag, Result(200).content_length) == (None, None)
    for value, length in (("20", 20), ("0", 0), ("", None), ("-1", None), ("٣", None)):
        assert Result(200, {"content-length": value}).content_length == length


def test_tags_come_in_order_with_their_entities_resolved_and_a_text_is_read_by_its_name() -> None:
    body = (
        f"<Tagging {NAMESPACE}><TagSet><Tag><Key>b</Key><Value>1 &amp; 2</Value></Tag>"
        "<Tag><Key>a</Key><Value/></Tag></TagSet></Tagging>"
    )
    assert read_tags(body.encode()) == (("b", "1 & 2"), ("a", ""))
    assert read_tags(b"<Tagging><TagSet/></Tagging>") == ()
    with pytest.raises(ServerFault):
        read_tags(b"<html></html>")
    begun = f"<InitiateMultipartUploadResult {NAMESPACE}><UploadId>a+b/c</UploadId></InitiateMultipartUploadResult>"
    assert read_text(begun.encode(), "UploadId") == "a+b/c"
    assert read_text(begun.encode(), "ETag") is None


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><Error><Code>&b;</Code></Error>'


def test_a_body_with_entities_of_its_own_is_not_parsed() -> None:
    assert read_error(BOMB.encode()) == read_error(BOMB.encode("utf-16")) == ("", "")


@given(st.binary(max_size=200))
def test_no_body_can_break_the_reader(body: bytes) -> None:
    answer = read(400, {}, body, may_hide_error=True)
    assert isinstance(answer.error, ObjectError)
    assert answer.etag is None or isinstance(answer.etag, str)


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (b"<html><head><title>400 The plain HTTP request was sent to HTTPS port</title>", "The plain HTTP request"),
        (b"Client sent an HTTP request to an HTTPS server.\n", "Client sent an HTTP request to an HTTPS server."),
        (gzip.compress(b"<title>403 Forbidden</title>"), ""),
        (b"got Authorization: AWS4-HMAC-SHA256 Credential=key/20261127, Signature=0a", ""),
        (b'{"error": "no such bucket"}', ""),
    ],
    ids=["a title", "a line", "compressed", "the request", "JSON"],
)
def test_what_a_page_says_is_told_where_it_can_be(page: bytes, told: str) -> None:
    said = read_page(Response(400, {}, page))
    assert said.startswith(told)
    assert bool(said) == bool(told)
