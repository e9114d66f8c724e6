"""The fake S3 server refuses, takes its time and falls silent as it is told, and counts what it let through."""

import socket
import statistics
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from rowferry_lab.servers.fake_s3.api import FakeApi
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.server import FakeS3
from rowferry_lab.servers.fake_s3.settings import Latency, Limits
from rowferry_lab.servers.fake_s3.store import Store
from rowferry_lab.servers.s3_servers import FakeS3Server
from rowferry_lab.servers.server_process import ServerFailed
from support.processes.processes import wait_for
from support.s3.buckets import connect_s3

PUT = b"PUT /production/avatar/1.png HTTP/1.1\r\nAuthorization: AWS4-HMAC-SHA256 Credential=one/20261122/x, Signed"
GET = b"GET /legacy/image/1.png HTTP/1.1"
SECOND = [100 + number / 1000 for number in range(1000)]
"""A thousand requests in a second."""


def server_with(limits: Limits) -> FakeS3:
    server = FakeS3(FakeApi(Store()))
    server.set_limits(limits)
    return server


@pytest.mark.parametrize(
    ("limits", "head", "admitted"),
    [
        (Limits(), PUT, 1000),
        (Limits(writes_per_second=100, burst_seconds=0.5), PUT, 150),  # what flows in, and what was there
        (Limits(reads_per_second=100, burst_seconds=0.5), GET, 150),
        (Limits(reads_per_second=1), PUT, 1000),
        (Limits(writes_per_second=1), GET, 1000),
        (Limits(writes_per_second=2000), PUT, 1000),
        (Limits(writes_per_second=100, counts_refused=True), PUT, 10),  # the debt is never paid
        (Limits(refused_share=0.05), PUT, 950),
    ],
)
def test_it_lets_so_many_of_a_thousand_requests_through(limits: Limits, head: bytes, admitted: int) -> None:
    server = server_with(limits)
    assert sum(server.admit(Request(head), now) for now in SECOND) == pytest.approx(admitted, rel=0.02, abs=1)


def test_latency_has_its_median_and_its_spread_and_a_share_is_instant() -> None:
    dice = Random(1)
    drawn = sorted(Latency(seconds=0.3, sigma=0.6).draw(dice) for _ in range(20_000))
    assert statistics.median(drawn) == pytest.approx(0.3, rel=0.05)
    assert drawn[int(0.8413 * len(drawn))] == pytest.approx(0.3 * 1.822, rel=0.05)  # one sigma above: e ** 0.6
    shared = [Latency(seconds=0.1, instant_share=0.1).draw(dice) for _ in range(20_000)]
    assert (shared.count(0.0) + shared.count(0.1), shared.count(0.0)) == (20_000, pytest.approx(2000, rel=0.1))


# A running server


@pytest.fixture
def server() -> Iterator[FakeS3Server]:
    with FakeS3Server("--body-bytes=20") as server:
        yield server


@pytest.fixture
def client(server: FakeS3Server) -> Iterator[Any]:
    client = connect_s3(server)
    yield client
    client.close()


def test_it_is_configured_while_it_runs(server: FakeS3Server, client: Any) -> None:
    server.configure("limits", writes_per_second=1, retry_after=7)
    client.put_object(Bucket="production", Key="1", Body=b"")
    with pytest.raises(ClientError) as raised:
        client.put_object(Bucket="production", Key="2", Body=b"")
    response: Any = raised.value.response["ResponseMetadata"]
    assert (response["HTTPStatusCode"], response["HTTPHeaders"]["retry-after"]) == (503, "7")
    server.configure("latency", seconds=0.2)
    began = time.monotonic()
    client.head_bucket(Bucket="legacy")
    assert time.monotonic() - began >= 0.2
    for group in ("limits", "speed"):
        with pytest.raises(ServerFailed, match="refuses"):
            server.configure(group, writes_per_second="many")


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
