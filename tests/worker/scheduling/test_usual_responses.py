"""What a lane takes for the usual success is one to whoever reads it with care, whatever a server writes."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from rowferry.batch import Outcome
from rowferry.errors import ObjectError, ObjectRejected
from rowferry.plan import ProductionSide
from rowferry.s3.access import signing, template
from rowferry.s3.access.credentials import take_snapshot
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.access.signing import HeadWriter
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import REQUESTER_PAYS, copy_object
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.copying.transfer import PlainCopy
from rowferry_worker.scheduling.lanes import PlainCopies
from support.s3.lanes import COPIED, DIGEST

URL = "http://127.0.0.1:1"
KEYS = Credentials("AK", "SK")
PRODUCTION = ProductionSide("new", endpoint_url=URL)
OTHER = "1" * 32


def client_of(side: Any) -> ObjectClient:
    return ObjectClient(
        side, KEYS, endpoint=resolve_endpoint(side), max_in_flight=1, deadline=timedelta(seconds=1), max_body_bytes=4096
    )


def copies(*keys: str) -> PlainCopies:
    return PlainCopies(client_of(PRODUCTION), "copies", PlainCopy("old", ()), {key: f"new/{key}" for key in keys})


COPIES = copies("k")

STUB = b"x-amz-request-id: A1\r\nServer: stub\r\nDate: Fri, 27 Nov 2026 08:00:00 GMT\r\n"
AWS = (
    b"x-amz-id-2: a/b+c=\r\nx-amz-request-id: A1\r\nDate: Fri, 27 Nov 2026 08:00:00 GMT\r\n"
    b"x-amz-server-side-encryption: AES256\r\nContent-Type: application/xml\r\nServer: AmazonS3\r\n"
)
NGINX = b"Server: nginx\r\nConnection: keep-alive\r\nVary: Origin\r\n"
BODIES = (
    COPIED,
    b'<CopyObjectResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">\n <ETag>"%s"</ETag>\n</CopyObjectResult>\n'
    % DIGEST.encode(),
    b"<CopyObjectResult><ETag>&#34;opaque&#34;</ETag><LastModified>x</LastModified></CopyObjectResult>",
)


def respond(headers: bytes, body: bytes, length: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" % (length, headers, body)


COPIED_WELL = [respond(headers, body, len(body)) for headers in (STUB, AWS, NGINX) for body in BODIES]
LINES = (
    "HTTP/1.1 100 Continue", "HTTP/1.1 200 OK", "Connection: close", "Connection: keep-alive", "connection:\tclose",
    "Proxy-Connection: close", "Transfer-Encoding: chunked", "Content-Length: 5", "content-length: 0",
    "Content-Length:0", "Content-Length: 20480", "Upgrade: h2c", "Trailer: ETag", "Content-Encoding: gzip",
    f'ETag: "{OTHER}"', f'etag: W/"{DIGEST}"', "ETag: ", "ETag : x", "X :y", " folded",
    "x-amz-server-side-encryption: aws:kms", "x-amz-server-side-encryption: AES256",
    "x-amz-server-side-encryption-customer-algorithm: AES256",
)  # fmt: skip
WORDS = (
    "\r\n", "\n", "\r", " ", "\t", "\0", "\x7f", "\xe9", ":", "0", "1", '"', "&quot;", "<", ">", "\r\n\r\n", "HTTP/1.0",
    "200", "206", "202", "412", "<Error>", "<Error><Code>SlowDown</Code></Error>", "<ETag>x</ETag>", "<html>",
    "</CopyObjectResult>", "<!--", "-->", "<!DOCTYPE x>",
)  # fmt: skip
PIECES = st.sampled_from([b"", *(f"{line}\r\n".encode() for line in LINES), *(word.encode() for word in WORDS)])


@st.composite
def mutated(draw: st.DrawFn, originals: list[bytes]) -> bytes:
    """Draw a response with some bytes in the place of others; where it has a length, that may be made right again."""
    data = draw(st.sampled_from(originals))
    for _ in range(draw(st.integers(0, 3))):
        marks = [index + 2 for index in range(len(data)) if data.startswith(b"\r\n", index)]
        begin = draw(st.sampled_from([*marks, 0, len(data)]) | st.integers(0, len(data)))
        end = begin + draw(st.sampled_from([0, 0, 0, 1, 2, 10]))
        data = data[:begin] + draw(PIECES | st.binary(max_size=2)) + data[end:]
    if draw(st.booleans()):
        head, end, body = data.partition(b"\r\n\r\n")
        lines = [
            b"Content-Length: %d" % len(body) if x.startswith(b"Content-Length: ") else x for x in head.split(b"\r\n")
        ]
        data = b"\r\n".join(lines) + end + body
    return data


def read_with_care(usual: PlainCopies, key: str, data: bytes) -> CopyResult | ObjectError | None:
    """Return what the client and the copy make of these bytes; None: a task has to find out, or more is to come."""
    parser = usual.client.new_parser(usual.method)
    try:
        parser.feed(data)
        if not parser.is_complete or not parser.leaves_connection_usable:
            return None
        response, error = usual.client.judge(usual.make_request(key), parser)
        return error or usual.read(response, 1.0, 3.0)
    except ObjectError as error:
        return error


@given(mutated(COPIED_WELL))
def test_a_copy_that_is_recognised_is_one(data: bytes) -> None:
    result = COPIES.recognise(data, 1.0, 3.0)
    assert result is None or result == read_with_care(COPIES, "k", data)


@pytest.mark.parametrize("data", COPIED_WELL)
def test_what_servers_answer_to_a_copy_is_usual(data: bytes) -> None:
    result = COPIES.recognise(data, 1.0, 3.0)
    assert result is not None
    assert (result.outcome, result.etag in {DIGEST, "opaque"}) == (Outcome.MIGRATED, True)
    assert (result.began, result.seconds) == (1.0, 2.0)


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=300), st.integers(0, 2))
def test_a_template_writes_what_the_writer_writes(key: str, source: str, second: int) -> None:
    """To the byte, in whatever second, for whatever key; what cannot be written is refused by both."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (signing, template):
            patch.setattr(module.time, "time", lambda: 1_795_766_400.0 + second)
        plain = PlainCopy("old", (REQUESTER_PAYS,))
        usual = PlainCopies(COPIES.client, "copies", plain, {source: key})
        try:
            request = copy_object(
                key, source_bucket="old", source_key=source, if_none_match=True, headers=plain.headers
            )
        except ObjectRejected:
            with pytest.raises(ObjectRejected):
                usual.write(source)
            return
        frozen = take_snapshot(KEYS)
        writer = HeadWriter(PRODUCTION, resolve_endpoint(PRODUCTION))
        assert usual.write(source) == writer.write(request, frozen, "identity")
