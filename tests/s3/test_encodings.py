"""No compression is asked for where it is not decoded, and what a proxy has compressed never becomes an object."""

import gzip
import hashlib
import socket
from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from rowferry.errors import ServerFault
from rowferry.http import event_loop
from rowferry.plan import SideName
from rowferry.s3 import operations
from rowferry.s3.client import ObjectClient
from rowferry.s3.listings.keys import list_range
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from support.s3.clients import GET, HEAD, opened, side_of
from support.s3.fake_buckets import FakeBuckets, stored
from support.s3.fake_s3 import endpoint_at
from support.s3.stand_in import Behaviour, StandIn, answer

PAGE = b"<p>A page that is stored as it is.</p>" * 100
PACKED = gzip.compress(PAGE, mtime=0)
MD5 = hashlib.md5(PAGE, usedforsecurity=False).hexdigest()
WITHIN = timedelta(seconds=60)
OTHERS = [
    operations.head_bucket("legacy"),
    operations.list_keys("legacy", "image/"),
    operations.list_first_object("legacy"),
    operations.list_parts("k", upload_id="u"),
    operations.get_object_tagging("production", "k"),
    operations.get_object_acl("production", "k"),
    operations.create_multipart_upload("k"),
    operations.complete_multipart_upload("k", upload_id="u", parts=[(1, "e")], if_none_match=False),
]

Judge = Callable[[str], Behaviour]


def without_length(status: int, body: bytes, **headers: str) -> Behaviour:
    """Send an answer in chunks; the names of headers are written with `_` for `-`."""
    lines = [f"HTTP/1.1 {status} Whatever", "Transfer-Encoding: chunked"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b""
    message = "\r\n".join([*lines, "", ""]).encode() + chunks
    return lambda connection: connection.sendall(message)


def headers_only(headers: str) -> Behaviour:
    def behave(connection: socket.socket) -> None:
        connection.sendall(f"HTTP/1.1 200 OK\r\n{headers}\r\n\r\n".encode())

    return behave


def plainly(etag: str, head: str) -> Behaviour:
    if head.startswith("HEAD"):
        return headers_only(f'ETag: "{etag}"\r\nContent-Length: {len(PAGE)}')
    return answer(200, PAGE, ETag=f'"{etag}"')


def compressing(etag: str, packed: Behaviour, packed_head: Behaviour | None = None) -> Judge:
    """Respond as a proxy that compresses what is asked for so; `packed_head`: HEADs as well."""

    def judge(head: str) -> Behaviour:
        if "Accept-Encoding: gzip" not in head:
            return plainly(etag, head)
        if head.startswith("HEAD"):
            return packed_head or plainly(etag, head)
        return packed

    return judge


COMPRESSED: dict[str, tuple[str, Behaviour, Behaviour | None]] = {
    "nginx": (MD5, without_length(200, PACKED, ETag=f'W/"{MD5}"', Content_Encoding="gzip"), None),
    "Apache": (
        MD5,
        answer(200, PACKED, ETag=f'"{MD5}-gzip"', Content_Encoding="gzip"),
        headers_only(f'ETag: "{MD5}-gzip"\r\nContent-Encoding: gzip'),
    ),
    "with another ETag": (f"{MD5}-2", answer(200, PACKED, ETag='"x"', Content_Encoding="gzip"), None),
    "with the ETag of the object": (f"{MD5}-2", answer(200, PACKED, ETag=f'"{MD5}-2"', Content_Encoding="gzip"), None),
    "encrypted": (
        MD5,
        answer(200, PACKED, ETag=f'"{MD5}"', Content_Encoding="gzip", x_amz_server_side_encryption="aws:kms"),
        None,
    ),
}
"""By proxy: the object's ETag, the response to a GET that takes gzip, and that to a HEAD where it is another."""


async def fetch(client: ObjectClient, request: Request) -> tuple[Response, bytes]:
    response = await client.send(request)
    if response.stream is None:
        return response, response.body
    try:
        return response, await response.stream.read_all()
    finally:
        response.stream.close()


def send(
    judge: Judge, *requests: Request, side: SideName = "production"
) -> tuple[list[tuple[Response, bytes]], list[str]]:
    """Return what came of requests of one client, and how each was asked for."""
    with StandIn().judging(judge) as server:
        chosen = side_of(server, side)
        with opened(chosen, endpoint=endpoint_at(server.endpoint_url)) as client:
            got = [event_loop.run(fetch(client, request), WITHIN) for request in requests]
    return got, [f"{head.split()[0]} {head.split('Accept-Encoding: ')[1].split()[0]}" for head in server.requests]


@pytest.mark.parametrize("request_", OTHERS, ids=lambda each: each.operation)
def test_what_is_no_object_is_asked_for_plain(request_: Request) -> None:
    """MinIO, nginx and Apache compress XML as soon as they may, and nothing is decoded here."""
    _, asked = send(lambda _: answer(200), request_, side=request_.side)
    assert asked == [f"{request_.method} identity"]


@pytest.mark.parametrize("size", ["taken whole", "streamed"])
@pytest.mark.parametrize("proxy", COMPRESSED)
def test_an_object_that_a_proxy_has_compressed_comes_plain(proxy: str, size: str) -> None:
    etag, packed, packed_head = COMPRESSED[proxy]
    request = replace(GET, stream_above=100 if size == "streamed" else None)
    (first, second), asked = send(compressing(etag, packed, packed_head), request, request)
    assert [first[1], second[1]] == [PAGE, PAGE]
    assert first[0].etag == etag
    assert asked[-2:] == ["GET identity", "GET identity"]  # the second object costs one request


def test_the_head_of_a_compressed_object_tells_its_length_all_the_same() -> None:
    """Apache leaves the length out of a HEAD."""
    etag, packed, packed_head = COMPRESSED["Apache"]
    (found, *_), asked = send(compressing(etag, packed, packed_head), HEAD)
    assert (found[0].etag, found[0].content_length) == (etag, len(PAGE))
    assert asked == ["HEAD gzip", "HEAD identity"]


def test_an_object_that_is_stored_compressed_comes_as_it_is_stored() -> None:
    """As at R2 and GCS, which inflate what is asked for plain: so the HEAD tells, and nothing is asked for twice."""

    def judge(head: str) -> Behaviour:
        if "Accept-Encoding: gzip" not in head:
            return without_length(200, PAGE, ETag=f"W/{etag}")
        if head.startswith("HEAD"):
            return headers_only(f"ETag: {etag}\r\nContent-Encoding: gzip\r\nContent-Length: {len(PACKED)}")
        return answer(200, PACKED, ETag=etag, Content_Encoding="gzip")

    own = f'"{hashlib.md5(PACKED, usedforsecurity=False).hexdigest()}"'
    for etag in (f'"{"a" * 32}-2"', '"no digest"', own):
        (got, *_), asked = send(judge, GET)
        assert got[1] == PACKED
        assert asked == (["GET gzip"] if etag == own else ["GET gzip", "HEAD gzip"])


@pytest.mark.parametrize("etag", [f'"{"a" * 32}-2"', f'"{MD5}"'])
def test_a_body_without_its_length_is_held_against_the_head(etag: str) -> None:
    """It may end early, and cleanly: the ETag need not tell."""

    def judge(head: str) -> Behaviour:
        if head.startswith("HEAD"):
            return headers_only(f"ETag: {etag}\r\nContent-Length: {len(PAGE)}")
        return without_length(200, bodies.pop(0), ETag=etag)

    bodies = [PAGE]
    (got, *_), asked = send(judge, GET)
    assert (got[1], asked) == (PAGE, ["GET gzip", "HEAD gzip"])
    bodies = [PAGE[:1000], PAGE[:1000]]
    with pytest.raises(ServerFault, match="NoContentLength"):
        send(judge, GET)


def test_what_is_compressed_whatever_is_asked_for_names_the_proxy() -> None:
    for packed in (COMPRESSED["nginx"][1], COMPRESSED["with another ETag"][1]):
        with pytest.raises(ServerFault, match=r"Recoded: a proxy before the server .* \(nginx: gzip off") as refused:
            send(lambda head, packed=packed: plainly(MD5, head) if head.startswith("HEAD") else packed, GET)
        assert refused.value.where == "GetObject production"


def test_the_lists_of_a_server_that_compresses_xml_are_read() -> None:
    """As MinIO does from 1,000 bytes on: its buckets could not be listed."""
    keys = [f"image/{number:02}.png" for number in range(20)]
    fake = FakeBuckets(legacy={key: stored(b"x") for key in keys}, gzips_xml=True)
    with fake.serving():
        legacy = fake.clients["legacy"]
        listed = list_range(legacy.ask, "legacy", "image/", "image/", None, most_keys=99, is_enough=lambda _: False)
    assert listed.keys == keys
