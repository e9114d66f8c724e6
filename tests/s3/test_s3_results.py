"""A success counts as one only where it says what it has done: what responds 200 is not always an S3 server."""

import pickle
from collections.abc import Callable

import pytest

from rowferry.errors import ObjectDamaged, ServerFault, SideFault
from rowferry.plan.sides import LegacySide
from rowferry.s3.cures import Refusal, codes_of_sides, find_cure
from rowferry.s3.errors import classify
from rowferry.s3.operations import get_object
from rowferry.s3.responses import Response
from rowferry.s3.results import (
    read_completed_etag,
    read_copied_etag,
    read_tag_count,
    read_upload_id,
    read_written_etag,
)
from support.s3.clients import COPY, GET, HEAD
from support.s3.said import OK, say
from support.s3.scenarios import Scenario, hold_scenarios
from support.s3.stand_in import Behaviour, answer

NAMESPACE = b' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
LOGIN_PAGE = b"<html>ETag please log in</html>"
RANGED = get_object("production", "k", first_byte=3, last_byte=5)


def xml(body: bytes) -> Response:
    return Response(200, {}, body)


COMPLETED = b"<CompleteMultipartUploadResult><Key>k</Key><ETag>%s</ETag></CompleteMultipartUploadResult>"
BEGUN = b"<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>"
BEGUN_OTHERWISE = b"<InitiateMultipartUpload%s><Bucket>b</Bucket><UploadId>u</UploadId></InitiateMultipartUpload>"
Read = Callable[[Response], object]
CONFIRMED: tuple[tuple[Read, Response, object], ...] = (
    (read_written_etag, Response(200, {"etag": '"e"'}), "e"),
    (read_copied_etag, xml(b"<CopyObjectResult><ETag>&quot;e&quot;</ETag></CopyObjectResult>"), "e"),
    (read_copied_etag, xml(b"<CopyPartResult><ETag>&#34;e&#34;</ETag></CopyPartResult>"), "e"),
    (
        read_copied_etag,
        xml(
            b'<?xml version="1.0"?>\n  <CopyObjectResult%s>\n <LastModified>x</LastModified>\n <ETag>"e"</ETag>\n'
            b" <ChecksumType>FULL</ChecksumType></CopyObjectResult>\n" % NAMESPACE
        ),
        "e",
    ),
    (read_copied_etag, xml(b"\n\n<CopyPartResult><ETag>e</ETag></CopyPartResult>"), "e"),
    (read_copied_etag, xml(b'<s:CopyObjectResult xmlns:s="x"><s:ETag>&#34;e&#34;</s:ETag></s:CopyObjectResult>'), "e"),
    (read_copied_etag, xml(b"<CopyObjectResult><Many>%s</Many><ETag>e</ETag></CopyObjectResult>" % (b"x" * 5000)), "e"),
    (read_copied_etag, xml(b"<CopyObjectResponse><ETag>e</ETag></CopyObjectResponse>"), "e"),
    (read_completed_etag, xml(COMPLETED % b"&quot;e-2&quot;"), "e-2"),
    (read_completed_etag, xml(COMPLETED % b""), None),
    (read_completed_etag, xml(b"<CompleteMultipartUpload><ETag>e-2</ETag></CompleteMultipartUpload>"), "e-2"),
    (read_upload_id, xml(BEGUN % b"u"), "u"),
    (read_upload_id, xml(BEGUN_OTHERWISE % NAMESPACE), "u"),
    (read_tag_count, Response(200, {"x-amz-tagging-count": "3"}), 3),
    (read_tag_count, Response(200), None),
)
"""A result is known by what it holds and not by its name, as SDKs take it: `rclone serve s3` leaves Result out."""


def test_a_success_that_says_what_was_done_is_one(subtests: pytest.Subtests) -> None:
    for read, response, expected in CONFIRMED:
        with subtests.test(f"{read.__name__} {response.body[:60]!r}"):
            assert read(response) == expected


UNCONFIRMED: tuple[tuple[Read, Response], ...] = (
    (read_written_etag, xml(LOGIN_PAGE)),
    (read_written_etag, Response(200, {"etag": '""'})),
    *(
        (read_copied_etag, Response(200, {"etag": '"of the page"'}, body))
        for body in (
            b"",
            LOGIN_PAGE,
            b"<html><ETag>e</ETag></html>",
            b"<CopyObjectResult><ETag></ETag></CopyObjectResult>",
            b"<CopyObjectResult><ETag>e</ETag>",
            b"<Other><CopyObjectResult><ETag>e</ETag></CopyObjectResult></Other>",
            b"<CopyObjectResult><!-- <ETag>e</ETag> --></CopyObjectResult>",
            b"<CopyObjectResult><Of><ETag>e</ETag></Of></CopyObjectResult>",
            b"<CopyObjectResult><ETag>e</ETag></CopyPartResult>",
            b"<CopyObjectResult><ETag>\xff\xfe</ETag></CopyObjectResult>",
            b"<CopyObjectResult><ETag>&quot;a\xc3&quot;</ETag></CopyObjectResult>",
        )
    ),
    (read_completed_etag, Response(200, {"etag": "e-2"}, LOGIN_PAGE)),
    *((read_upload_id, xml(body)) for body in (LOGIN_PAGE, b"<UploadId>u</UploadId>", BEGUN % b"")),
    *((read_tag_count, Response(200, {"x-amz-tagging-count": count})) for count in ("abc", "²", "9" * 5000, "-1", "")),
)


def test_a_success_that_does_not_say_what_was_done_is_none(subtests: pytest.Subtests) -> None:
    for read, response in UNCONFIRMED:
        with subtests.test(f"{read.__name__} {response.body[:60]!r} {response.headers}"), pytest.raises(ServerFault):
            read(response)


def test_an_upload_without_an_id_names_what_ends_it() -> None:
    with pytest.raises(ServerFault, match="clean-uploads"):
        read_upload_id(xml(b"<InitiateMultipartUploadResult></InitiateMultipartUploadResult>"))


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"


def ranged(content_range: str, body: bytes = b"abc") -> list[Behaviour]:
    return [answer(206, body, Content_Range=content_range)]


ANSWERS = {
    "merely accepted": Scenario([answer(202, ETag='"e"')], [(COPY, (ServerFault, "HTTP 202"))]),
    "a HEAD without a size": Scenario([say(OK + b'ETag: "e"\r\n\r\n')], [(HEAD, (ServerFault, "NoContentLength"))]),
    "a weak ETag": Scenario([say(OK + b'ETag: W/"e"\r\n' + CHUNKED)], [(GET, ServerFault)]),
    "recoded on the way": Scenario([say(OK + b"Content-Encoding: gzip\r\n" + CHUNKED)], [(GET, ServerFault)]),
    "a whole object": Scenario([answer(200, b"abcdefghi")], [(RANGED, ObjectDamaged)]),
    "a body that is too short": Scenario(ranged("bytes 3-5/9", b"ab"), [(RANGED, ObjectDamaged)]),
    "a body that is too long": Scenario(ranged("bytes 3-5/9", b"abcd"), [(RANGED, ObjectDamaged)]),
    "the last bytes, fewer than asked for": Scenario(ranged("bytes 3-4/5", b"ab"), [(RANGED, b"ab")]),
    **{
        f"bytes of another range, {one[:12]}": Scenario(ranged(one), [(RANGED, ObjectDamaged)])
        for one in ("bytes 0-2/9", "bytes 3-4/9", "bytes 3-5/²", "bytes 3-5/" + "9" * 5000, "")
    },
    **{
        f"the bytes that were asked for, {one}": Scenario(ranged(one), [(RANGED, b"abc")])
        for one in ("bytes 3-5/9", "bytes 3-5/6", "bytes 3-5/*")
    },
}


def test_a_client_takes_what_it_has_asked_for_and_nothing_else(subtests: pytest.Subtests) -> None:
    hold_scenarios(ANSWERS, subtests)


@pytest.mark.parametrize("code", sorted(codes_of_sides()))
def test_a_fault_of_a_side_says_what_to_do(code: str) -> None:
    status = int(code.removeprefix("HTTP ")) if code.startswith("HTTP ") else 403
    error = classify(status, "" if code.startswith("HTTP ") else code, "So it is.")
    assert isinstance(error, SideFault)
    error.side = "legacy"
    cure = find_cure(Refusal(code, "So it is.", status), LegacySide(bucket="b"))
    assert cure is not None
    remedy = cure.cure
    assert (error.remedy, error.summary) == (remedy, f"{code}: So it is.")
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == f"{code}: So it is; {remedy}"
    nameless = classify(status, "" if code.startswith("HTTP ") else code, "")
    nameless.side = "legacy"
    assert str(nameless) == f"{code}: {remedy}"
