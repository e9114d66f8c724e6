"""A success counts as one only where it says what it has done: what responds 200 is not always an S3 server."""

import pytest

from rowferry.errors import ObjectDamaged, ServerFault, SideFault
from rowferry.s3.errors import REMEDY_OF_CODE, classify
from rowferry.s3.operations import get_object
from rowferry.s3.responses import Response
from rowferry.s3.results import (
    read_completed_etag,
    read_copied_etag,
    read_parts,
    read_tag_count,
    read_upload_id,
    read_written_etag,
)
from support.s3.clients import COPY, GET, HEAD, ask, facing
from support.s3.said import OK, say
from support.s3.stand_in import answer

NAMESPACE = b' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
LOGIN_PAGE = b"<html>ETag please log in</html>"
RANGED = get_object("production", "k", first_byte=3, last_byte=5)


def test_a_put_without_an_etag_has_written_nothing() -> None:
    with pytest.raises(ServerFault):
        read_written_etag(Response(200, {}, LOGIN_PAGE))
    with pytest.raises(ServerFault):
        read_written_etag(Response(200, {"etag": '""'}))
    assert read_written_etag(Response(200, {"etag": '"e"'})) == "e"


@pytest.mark.parametrize(
    "body",
    [
        b"<CopyObjectResult><ETag>&quot;e&quot;</ETag></CopyObjectResult>",
        b"<CopyPartResult><ETag>&#34;e&#34;</ETag></CopyPartResult>",
        b'<?xml version="1.0"?>\n  <CopyObjectResult%s>\n <LastModified>x</LastModified>\n <ETag>"e"</ETag>\n'
        b" <ChecksumType>FULL</ChecksumType></CopyObjectResult>\n" % NAMESPACE,
        b"\n\n<CopyPartResult><ETag>e</ETag></CopyPartResult>",
        b'<s:CopyObjectResult xmlns:s="x"><s:ETag>&#34;e&#34;</s:ETag></s:CopyObjectResult>',
        b"<CopyObjectResult><Many>%s</Many><ETag>e</ETag></CopyObjectResult>" % (b"x" * 5000),
    ],
)
def test_a_copy_is_confirmed_by_its_result(body: bytes) -> None:
    assert read_copied_etag(Response(200, {}, body)) == "e"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        LOGIN_PAGE,
        b"<html><ETag>e</ETag></html>",
        b"<CopyObjectResult><ETag></ETag></CopyObjectResult>",
        b"<CopyObjectResult><ETag>e</ETag>",
        b"<Other><CopyObjectResult><ETag>e</ETag></CopyObjectResult></Other>",
        b"<CopyObjectResult><!-- <ETag>e</ETag> --></CopyObjectResult>",
        b"<CopyObjectResult><Of><ETag>e</ETag></Of></CopyObjectResult>",
        b"<CopyObjectResult><ETag>e</ETag></CopyPartResult>",
    ],
)
def test_a_copy_without_a_result_has_copied_nothing(body: bytes) -> None:
    with pytest.raises(ServerFault):
        read_copied_etag(Response(200, {"etag": '"of the page"'}, body))


def test_a_completion_may_name_no_etag_but_must_be_a_result() -> None:
    result = b"<CompleteMultipartUploadResult><Key>k</Key><ETag>%s</ETag></CompleteMultipartUploadResult>"
    assert read_completed_etag(Response(200, {}, result % b"&quot;e-2&quot;")) == "e-2"
    assert read_completed_etag(Response(200, {}, result % b"")) is None
    with pytest.raises(ServerFault):
        read_completed_etag(Response(200, {"etag": "e-2"}, LOGIN_PAGE))


def test_an_upload_is_begun_only_with_an_id() -> None:
    result = b"<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>"
    assert read_upload_id(Response(200, {}, result % b"u")) == "u"
    for body in (LOGIN_PAGE, b"<UploadId>u</UploadId>", result % b""):
        with pytest.raises(ServerFault):
            read_upload_id(Response(200, {}, body))


def test_a_result_is_known_by_what_it_holds_and_not_by_its_name() -> None:
    """As SDKs take it: rclone's `serve s3`, for example, leaves the word Result out."""
    begun = b"<InitiateMultipartUpload%s><Bucket>b</Bucket><UploadId>u</UploadId></InitiateMultipartUpload>" % NAMESPACE
    assert read_upload_id(Response(200, {}, begun)) == "u"
    assert read_copied_etag(Response(200, {}, b"<CopyObjectResponse><ETag>e</ETag></CopyObjectResponse>")) == "e"
    completed = b"<CompleteMultipartUpload><ETag>e-2</ETag></CompleteMultipartUpload>"
    assert read_completed_etag(Response(200, {}, completed)) == "e-2"
    listed = b"<Parts><UploadId>u</UploadId><IsTruncated>false</IsTruncated><Part><PartNumber>1</PartNumber>"
    listed += b"<ETag>e</ETag><Size>3</Size></Part></Parts>"
    assert read_parts(Response(200, {}, listed)) == ([(1, "e", 3)], False)
    with pytest.raises(ServerFault):
        read_parts(Response(200, {}, begun))


def test_an_upload_without_an_id_names_what_ends_it() -> None:
    with pytest.raises(ServerFault, match="clean-uploads"):
        read_upload_id(Response(200, {}, b"<InitiateMultipartUploadResult></InitiateMultipartUploadResult>"))


def test_an_etag_that_is_no_text_confirms_no_copy() -> None:
    for etag in (b"\xff\xfe", b"&quot;a\xc3&quot;"):
        with pytest.raises(ServerFault):
            read_copied_etag(Response(200, {}, b"<CopyObjectResult><ETag>%s</ETag></CopyObjectResult>" % etag))


def test_what_was_merely_accepted_is_not_written() -> None:
    with facing(answer(202, ETag='"e"')) as (client, _):
        error = ask(client, COPY).error
    assert isinstance(error, ServerFault)
    assert error.code == "HTTP 202"


def test_a_number_of_tags_that_is_none_is_a_fault_of_the_server() -> None:
    assert read_tag_count(Response(200, {"x-amz-tagging-count": "3"})) == 3
    assert read_tag_count(Response(200)) is None
    for count in ("abc", "²", "9" * 5000, "-1", ""):
        with pytest.raises(ServerFault):
            read_tag_count(Response(200, {"x-amz-tagging-count": count}))


def test_a_head_without_a_size_is_no_empty_object() -> None:
    with facing(say(OK + b'ETag: "e"\r\n\r\n')) as (client, _):
        error = ask(client, HEAD).error
    assert isinstance(error, ServerFault)
    assert error.code == "NoContentLength"


@pytest.mark.parametrize("content_range", ["bytes 0-2/9", "bytes 3-4/9", "bytes 3-5/²", "bytes 3-5/" + "9" * 5000, ""])
def test_bytes_of_another_range_are_refused(content_range: str) -> None:
    with facing(answer(206, b"abc", Content_Range=content_range)) as (client, _):
        error = ask(client, RANGED).error
    assert isinstance(error, ObjectDamaged)


@pytest.mark.parametrize("content_range", ["bytes 3-5/9", "bytes 3-5/6", "bytes 3-5/*"])
def test_the_bytes_that_were_asked_for_are_taken(content_range: str) -> None:
    with facing(answer(206, b"abc", Content_Range=content_range)) as (client, _):
        assert ask(client, RANGED).body == b"abc"


def test_an_objects_last_bytes_may_be_fewer_than_asked_for() -> None:
    with facing(answer(206, b"ab", Content_Range="bytes 3-4/5")) as (client, _):
        assert ask(client, RANGED).body == b"ab"


def test_a_body_shorter_or_longer_than_its_range_is_refused() -> None:
    for body in (b"ab", b"abcd"):
        with facing(answer(206, body, Content_Range="bytes 3-5/9")) as (client, _):
            assert isinstance(ask(client, RANGED).error, ObjectDamaged)


def test_a_whole_object_is_no_range_of_it() -> None:
    with facing(answer(200, b"abcdefghi")) as (client, _):
        assert isinstance(ask(client, RANGED).error, ObjectDamaged)


def test_a_body_that_something_on_the_way_has_recoded_is_refused() -> None:
    chunked = b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    for sign in (b'ETag: W/"e"\r\n', b"Content-Encoding: gzip\r\n"):
        with facing(say(OK + sign + chunked)) as (client, _):
            assert isinstance(ask(client, GET).error, ServerFault)


@pytest.mark.parametrize("code", REMEDY_OF_CODE)
def test_a_fault_of_a_side_says_what_to_do(code: str) -> None:
    error = classify(403, code, "So it is.")
    assert isinstance(error, SideFault)
    assert str(error) == f"{code}: So it is; {REMEDY_OF_CODE[code]}"
    assert str(classify(400, code, "")) == f"{code}: {REMEDY_OF_CODE[code]}"
