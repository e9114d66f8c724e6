"""The fake of the tests deviates from Amazon's as it is told, and only then."""

import socket
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.store import Bucket, Store, make_object
from support.processes.processes import wait_for
from support.s3.deviations import DeviantApi, Deviations
from support.s3.fake_s3 import running_fakes

WRITE = b"PUT /b/k HTTP/1.1\r\nif-none-match: *\r\ncontent-length: 9000000\r\n\r\n"


def store_of(body: bytes, **more: dict[str, str]) -> Store:
    store = Store()
    store.buckets["b"] = Bucket()
    store.buckets["b"].put("k", make_object(body, **more))
    return store


@pytest.mark.parametrize(
    ("head", "deviations", "statuses"),
    [
        (b"PUT /b/to HTTP/1.1\r\nx-amz-copy-source: /b/k", Deviations(largest_copy_bytes=4), (200, 400)),
        (b'GET /b/k HTTP/1.1\r\nif-match: "another"', Deviations(read_if_match=False), (412, 200)),
        (b'HEAD /b/k HTTP/1.1\r\nif-match: "another"', Deviations(read_if_match=False), (412, 200)),
        (b'PUT /b/k HTTP/1.1\r\nif-match: "another"', Deviations(if_match=frozenset()), (412, 200)),
        (b"PUT /b/k HTTP/1.1\r\nif-none-match: *", Deviations(if_none_match=frozenset()), (412, 200)),
        (b"PUT /b/k HTTP/1.1\r\ncontent-md5: 1B2M2Y8AsgTpgAmY7PhCfw==", Deviations(), (400, 400)),
        (b"PUT /b/k HTTP/1.1\r\ncontent-md5: 1B2M2Y8AsgTpgAmY7PhCfw==", Deviations(checks_md5=False), (400, 200)),
    ],
)
def test_a_request_is_answered_as_by_amazon_and_as_told(
    head: bytes, deviations: Deviations, statuses: tuple[int, int]
) -> None:
    for told, status in zip((Deviations(), deviations), statuses, strict=True):
        request = Request(head)
        request.body = b"other words"
        assert DeviantApi(store_of(b"words"), told).answer(request).status == status


def test_a_carriage_return_in_a_tag_is_read_as_one() -> None:
    api = DeviantApi(store_of(b"words", tags={"line": "1\r2"}), Deviations())
    answer = api.answer(Request(b"GET /b/k?tagging HTTP/1.1"))
    assert ElementTree.fromstring(bytes(answer.body)).findtext(".//{*}Value") == "1\r2"


def test_a_server_may_look_before_it_reads_a_body_and_then_no_more() -> None:
    store = Store()
    store.buckets["b"] = Bucket()
    with running_fakes(Deviations(looks_early=True), store=store) as (server,):
        address = "127.0.0.1", urlsplit(server.endpoint_url).port
        with socket.create_connection(address) as early, socket.create_connection(address) as late:
            early.sendall(WRITE + bytes(5_000_000))
            wait_for(lambda: server.fake.bytes_received > len(WRITE))
            store.buckets["b"].put("k", make_object(b"theirs"))
            late.sendall(WRITE + bytes(5_000_000))
            assert read_to_end(late).startswith(b"HTTP/1.1 412 "), "at once, and what still comes resets nothing"
            early.sendall(bytes(4_000_000))
            assert early.recv(12) == b"HTTP/1.1 200"
    assert store.read("b", "k").size == 9_000_000


def read_to_end(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))
