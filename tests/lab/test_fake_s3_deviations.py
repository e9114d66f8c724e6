"""The fake S3 server deviates from Amazon's as it is told, and only then."""

import socket
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

from rowferry_lab.servers.fake_s3.api import FakeApi
from rowferry_lab.servers.fake_s3.http import Request, Response
from rowferry_lab.servers.fake_s3.settings import Deviations
from rowferry_lab.servers.fake_s3.store import Bucket, Store, StoredObject, make_object
from support.processes.processes import wait_for
from support.s3.fake_s3 import running_fakes


def test_an_object_above_its_limit_is_not_copied_whole() -> None:
    copying = b"PUT /b/to HTTP/1.1\r\nx-amz-copy-source: /b/from"
    for body, refusal in ((b"1234", None), (b"12345", b"<Code>EntityTooLarge</Code>")):
        api = api_of({"from": make_object(body)}, Deviations(largest_copy_bytes=4))
        answer = bytes_of(api.answer(Request(copying)))
        assert (refusal is None) == (b"CopyObjectResult" in answer)
        assert refusal is None or refusal in answer


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_a_read_may_ignore_its_condition(method: bytes) -> None:
    reading = Request(method + b' /b/k HTTP/1.1\r\nif-match: "another"')
    for honours, status in ((True, b"HTTP/1.1 412"), (False, b"HTTP/1.1 200")):
        api = api_of({"k": make_object(b"words")}, Deviations(read_if_match=honours))
        assert bytes_of(api.answer(reading)).startswith(status)


def test_a_carriage_return_in_a_tag_is_read_as_one() -> None:
    api = api_of({"k": make_object(b"words", tags={"line": "1\r2"})}, Deviations())
    answer = bytes_of(api.answer(Request(b"GET /b/k?tagging HTTP/1.1")))
    assert ElementTree.fromstring(answer.partition(b"\r\n\r\n")[2]).findtext(".//{*}Value") == "1\r2"


WRITE = b"PUT /b/k HTTP/1.1\r\nif-none-match: *\r\ncontent-length: 9000000\r\n\r\n"


def test_a_server_may_look_before_it_reads_a_body_and_then_no_more() -> None:
    store = Store()
    store.buckets["b"] = Bucket()
    with running_fakes(Deviations(looks_early=True), store=store) as (server,):
        address = "127.0.0.1", urlsplit(server.endpoint_url).port
        with socket.create_connection(address) as early, socket.create_connection(address) as late:
            early.sendall(WRITE + bytes(5_000_000))
            wait_for(lambda: server.fake.bytes_received > 0)
            store.buckets["b"].put("k", make_object(b"theirs"))
            late.sendall(WRITE + bytes(5_000_000))
            assert read_to_end(late).startswith(b"HTTP/1.1 412 "), "at once, and what still comes resets nothing"
            early.sendall(bytes(4_000_000))
            assert early.recv(12) == b"HTTP/1.1 200"
    assert store.read("b", "k").size == 9_000_000


def read_to_end(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def api_of(objects: dict[str, StoredObject], deviations: Deviations) -> FakeApi:
    store = Store()
    store.buckets["b"] = Bucket()
    store.buckets["b"].objects |= objects
    return FakeApi(store, deviations)


def bytes_of(response: Response) -> bytes:
    return response if isinstance(response, bytes) else b"".join(response)
