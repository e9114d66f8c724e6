"""The fake S3 server refuses, takes its time and falls silent as it is told, and counts what it let through."""

import hashlib
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from rowferry_lab.servers.fake_s3.connection import Meter
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.latency import LatencyModel
from rowferry_lab.servers.fake_s3.limits import Admission
from rowferry_lab.servers.fake_s3.settings import Latency, Limits, Link, read_query
from rowferry_lab.servers.fake_s3.uniform import UniformObjects, name_key
from rowferry_lab.servers.s3_servers import FakeS3Server
from rowferry_lab.servers.server_process import ServerFailed
from support.processes.processes import wait_for
from support.s3.buckets import connect_s3

PUT = b"PUT /production/avatar/1.png HTTP/1.1\r\nAuthorization: AWS4-HMAC-SHA256 Credential=one/20261122/x, Signed"
PUT_BY_TWO = PUT.replace(b"=one/", b"=two/")
GET = b"GET /legacy/image/1.png HTTP/1.1"
SIZES = (20_000, 12_000_000)
PART_BYTES = 5 * 1024 * 1024


def count_admitted(limits: Limits, head: bytes, times: list[float]) -> int:
    admission = Admission(limits, seed=1)
    return sum(admission.admit(Request(head), now) for now in times)


def spread(per_second: int, seconds: int) -> list[float]:
    return [100 + number / per_second for number in range(per_second * seconds)]


# What it lets through


@pytest.mark.parametrize("head", [PUT, GET])
def test_a_token_bucket_lets_its_rate_through_and_a_burst_first(head: bytes) -> None:
    limits = Limits(writes_per_second=100, reads_per_second=100, burst_seconds=0.5)
    assert count_admitted(limits, head, spread(1000, 10)) == pytest.approx(100 * 10 + 50, abs=1)
    assert count_admitted(limits, head, spread(90, 10)) == 900


def test_reads_and_writes_have_bounds_of_their_own() -> None:
    assert count_admitted(Limits(writes_per_second=1), GET, spread(100, 1)) == 100
    assert count_admitted(Limits(reads_per_second=1), PUT, spread(100, 1)) == 100


def test_windows_let_so_many_through_in_each_second() -> None:
    limits = Limits(writes_per_second=10, windows=True)
    assert count_admitted(limits, PUT, [100.0] * 30) == 10
    assert count_admitted(limits, PUT, [*[100.9] * 30, *[101.0] * 30]) == 20


def test_a_share_is_refused_at_random() -> None:
    assert count_admitted(Limits(refused_share=0.05), PUT, spread(1000, 10)) == pytest.approx(9500, abs=100)


def test_it_counts_what_it_lets_through_by_operation_and_account() -> None:
    admission = Admission(Limits(writes_per_second=2, burst_seconds=1), seed=1)
    for head in (PUT, PUT_BY_TWO, PUT_BY_TWO, GET):
        admission.admit(Request(head), 100.0)
    assert admission.describe() == {
        "accepted": {"PutObject": 2, "GetObject": 1},
        "refused": {"PutObject": 1},
        "writes_accepted": {"one": 1, "two": 1},
        "writes_refused": {"two": 1},
    }


# How long it takes


def draw(latency: Latency, number: int = 20_000) -> list[float]:
    model = LatencyModel(latency, seed=1)
    return [model.draw() for _ in range(number)]


def test_a_lognormal_latency_has_its_median_and_its_spread() -> None:
    drawn = sorted(draw(Latency(seconds=0.3, sigma=0.6)))
    assert statistics.median(drawn) == pytest.approx(0.3, rel=0.05)
    assert drawn[int(0.8413 * len(drawn))] == pytest.approx(0.3 * 1.822, rel=0.05)  # one sigma above: e ** 0.6


def test_a_share_of_the_responses_is_instant() -> None:
    drawn = draw(Latency(seconds=0.1, instant_share=0.1))
    shares = {value: drawn.count(value) / len(drawn) for value in set(drawn)}
    assert shares == pytest.approx({0.0: 0.1, 0.1: 0.9}, abs=0.02)


def test_bytes_pass_one_after_the_other() -> None:
    meter = Meter()
    assert [meter.reserve(10.0, 100, 50), meter.reserve(11.0, 100, 50), meter.reserve(20.0, 50, 50)] == [12, 14, 21]
    assert meter.reserve(30.0, 1000, 0) == 30.0


def test_a_setting_of_another_type_is_refused() -> None:
    assert read_query(Link, {"total_bytes_per_second": "4e7"}) == Link(total_bytes_per_second=4e7)
    with pytest.raises(ValueError, match="fast"):
        read_query(Link, {"total_bytes_per_second": "fast"})


# A running server


@pytest.fixture
def server() -> Iterator[FakeS3Server]:
    with FakeS3Server("--body-bytes=" + ",".join(map(str, SIZES))) as server:
        yield server


@pytest.fixture
def client(server: FakeS3Server) -> Iterator[Any]:
    client = connect_s3(server)
    yield client
    client.close()


def test_a_refusal_says_when_to_come_again(server: FakeS3Server, client: Any) -> None:
    server.configure("limits", writes_per_second=1, retry_after=7)
    with pytest.raises(ClientError) as raised:
        put_many(client, 3)
    response: Any = raised.value.response["ResponseMetadata"]
    assert (response["HTTPStatusCode"], response["HTTPHeaders"]["retry-after"]) == (503, "7")
    stats = server.read_stats()
    assert stats["writes_accepted"]["rowferry"] == stats["objects"] >= 1
    assert stats["writes_refused"]["rowferry"] == stats["refused"]["PutObject"] == 1


def put_many(client: Any, number: int) -> None:
    for key in range(number):
        client.put_object(Bucket="production", Key=str(key), Body=b"")


def test_an_unknown_setting_is_refused(server: FakeS3Server) -> None:
    for group, name in (("limits", "writes_per_second"), ("speed", "writes_per_second")):
        with pytest.raises(ServerFailed, match="refuses"):
            server.configure(group, **{name: "many"})


@pytest.mark.by_day("0")
@pytest.mark.parametrize("silent", [0, 1])
def test_after_an_outage_it_answers_again(server: FakeS3Server, client: Any, silent: int) -> None:
    client.head_bucket(Bucket="legacy")
    port = int(server.endpoint_url.rpartition(":")[2])
    began, seconds = time.monotonic(), 1.5 if silent else 4
    server.configure("outage", seconds=seconds, silent=silent)
    if silent:
        wait_for(lambda: keeps_silent(port))
        client.head_bucket(Bucket="legacy")
        assert time.monotonic() - began >= seconds, "it has waited for the end"
    else:
        wait_for(lambda: refuses(port))
        with pytest.raises(BotoCoreError):
            client.head_bucket(Bucket="legacy")
    wait_for(lambda: answers(client))
    assert server.read_stats()["connections"] >= 1


def test_a_client_that_leaves_in_a_silence_keeps_no_other_waiting(server: FakeS3Server, client: Any) -> None:
    server.configure("outage", seconds=2, silent=1)
    address = "127.0.0.1", int(server.endpoint_url.rpartition(":")[2])
    for _ in range(5):
        with socket.create_connection(address, timeout=5) as leaving:
            leaving.sendall(b"HEAD /legacy/a HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(0.1)
    client.head_bucket(Bucket="legacy")
    assert answers(client)


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def keeps_silent(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=0.3) as connection:
        connection.sendall(b"HEAD /legacy/a HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            return not connection.recv(1)
        except TimeoutError:
            return True


def answers(client: Any) -> bool:
    try:
        client.head_bucket(Bucket="legacy")
    except BotoCoreError:
        return False
    return True


def find_key(size: int) -> str:
    objects = UniformObjects(SIZES)
    return next(key for key in map(name_key, range(1, 100)) if at(objects, key) == size)


def at(objects: UniformObjects, key: str) -> int:
    found = objects.find(key)
    assert found is not None
    return found.size


def read(client: Any, bucket: str, key: str) -> bytes:
    with client.get_object(Bucket=bucket, Key=key)["Body"] as body:
        return body.read()


@pytest.mark.parametrize("size", SIZES)
def test_the_expected_bytes_and_others_are_stored_alike(client: Any, size: int) -> None:
    key = find_key(size)
    expected = read(client, "legacy", key)
    assert len(expected) == size
    others = [expected[:-1], expected[:-1] + b"?", b"?" + expected[1:], expected + b"?"]
    for body in [expected, *others]:
        etag = client.put_object(Bucket="production", Key=key.replace("image", "avatar"), Body=body)["ETag"]
        assert etag.strip('"') == hashlib.md5(body).hexdigest()
        assert read(client, "production", key.replace("image", "avatar")) == body


def put_parts(client: Any, key: str, bodies: list[bytes]) -> Any:
    there = {"Bucket": "production", "Key": key}
    upload = {**there, "UploadId": client.create_multipart_upload(**there)["UploadId"]}
    for number, body in reversed(list(enumerate(bodies, 1))):
        etag = client.upload_part(**upload, PartNumber=number, Body=body)["ETag"]
        assert etag.strip('"') == hashlib.md5(body).hexdigest()
    listed = [
        part
        for page in client.get_paginator("list_parts").paginate(**upload, PaginationConfig={"PageSize": 2})
        for part in page["Parts"]
    ]
    assert [part["Size"] for part in listed] == [len(body) for body in bodies]
    parts = [{"PartNumber": part["PartNumber"], "ETag": part["ETag"]} for part in listed]
    return client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})


def test_expected_parts_make_the_expected_object(client: Any) -> None:
    key = find_key(SIZES[1])
    whole = read(client, "legacy", key)
    bodies = [whole[first : first + PART_BYTES] for first in range(0, len(whole), PART_BYTES)]
    assert len(bodies) == 3
    target = key.replace("image", "avatar")
    put_parts(client, target, bodies)
    assert read(client, "production", target) == whole
    put_parts(client, target, [bodies[0], b"?" + bodies[1][1:], bodies[2]])
    assert client.head_object(Bucket="production", Key=target)["ContentLength"] == len(whole)


def test_a_part_with_another_etag_than_named_completes_nothing(client: Any) -> None:
    there = {"Bucket": "production", "Key": "a"}
    upload = {**there, "UploadId": client.create_multipart_upload(**there)["UploadId"]}
    client.upload_part(**upload, PartNumber=1, Body=b"words")
    with pytest.raises(ClientError, match="InvalidPart"):
        client.complete_multipart_upload(**upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": '"0"'}]})


@pytest.mark.parametrize("body", [b"words", None])
def test_a_wrong_content_md5_is_refused(client: Any, body: bytes | None) -> None:
    key = find_key(SIZES[0])
    body = body or read(client, "legacy", key)
    with pytest.raises(ClientError, match="BadDigest"):
        client.put_object(Bucket="production", Key=key, Body=body, ContentMD5="1B2M2Y8AsgTpgAmY7PhCfg==")
    client.put_object(Bucket="production", Key=key, Body=body)


def measure(work: Callable[[Any], object], clients: list[Any]) -> float:
    """Return the seconds that the clients take together."""
    threads = [threading.Thread(target=work, args=[client]) for client in clients]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - began


def test_a_link_holds_back_each_connection_and_all_of_them_both_ways(server: FakeS3Server) -> None:
    key = find_key(SIZES[1])
    clients = [connect_s3(server) for _ in range(2)]
    body = read(clients[0], "legacy", key)

    def download(client: Any) -> None:
        assert len(read(client, "legacy", key)) == len(body)

    def upload(client: Any) -> None:
        client.put_object(Bucket="production", Key=key, Body=body)

    server.configure("link", connection_bytes_per_second=12e6)
    alone = [measure(work, clients[:1]) for work in (download, upload)]
    server.configure("link", total_bytes_per_second=12e6)
    together = [measure(work, clients) for work in (download, upload)]
    for client in clients:
        client.close()
    assert min(alone) >= 0.9
    assert min(together) >= 1.8
