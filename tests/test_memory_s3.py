"""The S3 server in memory stores what it is given as any other server would; what it cannot do, it refuses."""

import json
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from processes import is_running
from rowferry_lab.servers.memory_s3 import read_length
from rowferry_lab.servers.s3_servers import MemoryServer
from servers import connect_s3

PROPERTIES = {"ContentType": "text/plain", "CacheControl": "no-store", "Metadata": {"author": "me"}}
ODD_KEYS = ["some folder/ä+%41?.txt", "a//b", "/lead", "plus+plus", "\U0001f5bc.png", "#&<>'\"", "e\u0301", "\u00e9"]


@pytest.fixture(scope="module")
def server() -> Iterator[MemoryServer]:
    with MemoryServer() as server:
        yield server


@pytest.fixture
def client(server: MemoryServer) -> Iterator[Any]:
    client = connect_s3(server)
    for bucket in ("one", "two"):
        client.create_bucket(Bucket=bucket)
    yield client
    for bucket in ("one", "two"):
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            doomed = [{"Key": item["Key"]} for item in page.get("Contents", [])]
            if doomed:
                client.delete_objects(Bucket=bucket, Delete={"Objects": doomed, "Quiet": True})
    client.close()


def read(client: Any, bucket: str, key: str, **more: Any) -> bytes:
    with client.get_object(Bucket=bucket, Key=key, **more)["Body"] as body:
        return body.read()


def refusal(call: Any, **arguments: Any) -> tuple[int, str]:
    with pytest.raises(ClientError) as raised:
        call(**arguments)
    answer = raised.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_an_object_is_copied_with_its_properties_and_tags(client: Any, key: str) -> None:
    client.put_object(Bucket="one", Key=key, Body=b"words", Tagging="album=1&kind=a%20b", **PROPERTIES)
    client.copy_object(Bucket="two", Key=key, CopySource={"Bucket": "one", "Key": key})
    found = client.head_object(Bucket="two", Key=key)
    assert {name: found[name] for name in PROPERTIES} == PROPERTIES
    assert read(client, "two", key) == b"words"
    tags = client.get_object_tagging(Bucket="two", Key=key)["TagSet"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"album": "1", "kind": "a b"}
    assert [item["Key"] for item in client.list_objects_v2(Bucket="two")["Contents"]] == [key]


def test_a_listing_goes_on_over_many_pages_in_the_order_of_the_keys(client: Any) -> None:
    keys = [f"image/{number:02}" for number in range(25)]
    for key in [*reversed(keys), "other"]:
        client.put_object(Bucket="one", Key=key, Body=b"")
    paginator = client.get_paginator("list_objects_v2")
    pages = list(paginator.paginate(Bucket="one", Prefix="image/", PaginationConfig={"PageSize": 10}))
    assert [len(page["Contents"]) for page in pages] == [10, 10, 5]
    assert [item["Key"] for page in pages for item in page["Contents"]] == keys


def test_conditions_are_honoured(client: Any) -> None:
    etag = client.put_object(Bucket="one", Key="k", Body=b"old")["ETag"]
    source = {"Bucket": "one", "Key": "k"}
    assert refusal(client.put_object, Bucket="one", Key="k", Body=b"new", IfNoneMatch="*")[0] == 412
    client.copy_object(Bucket="two", Key="k", CopySource=source, CopySourceIfMatch=etag)
    wrong = {"CopySource": source, "CopySourceIfMatch": '"0"'}
    assert refusal(client.copy_object, Bucket="two", Key="k", **wrong)[0] == 412
    assert refusal(client.get_object, Bucket="one", Key="k", IfMatch='"0"')[0] == 412
    assert read(client, "one", "k") == b"old"


def test_ranges_are_bytes_from_to_both_included(client: Any) -> None:
    client.put_object(Bucket="one", Key="k", Body=b"0123456789")
    assert read(client, "one", "k", Range="bytes=2-4") == b"234"
    assert read(client, "one", "k", Range="bytes=7-") == b"789"
    assert refusal(client.get_object, Bucket="one", Key="k", Range="bytes=10-") == (416, "InvalidRange")


def test_what_is_not_there_is_said_to_be_missing(client: Any) -> None:
    assert refusal(client.get_object, Bucket="one", Key="none") == (404, "NoSuchKey")
    assert refusal(client.get_object, Bucket="three", Key="k") == (404, "NoSuchBucket")
    assert refusal(client.head_bucket, Bucket="three")[0] == 404
    client.put_object(Bucket="one", Key="k", Body=b"")
    client.delete_object(Bucket="one", Key="k")
    assert refusal(client.get_object, Bucket="one", Key="k") == (404, "NoSuchKey")


def test_what_it_cannot_do_it_refuses(client: Any) -> None:
    assert refusal(client.create_multipart_upload, Bucket="one", Key="k") == (501, "NotImplemented")
    replaced = {"CopySource": "one/k", "MetadataDirective": "REPLACE"}
    assert refusal(client.copy_object, Bucket="two", Key="k", **replaced) == (501, "NotImplemented")


def test_every_answer_takes_the_set_latency_at_least(server: MemoryServer, client: Any) -> None:
    client.put_object(Bucket="one", Key="k", Body=b"")
    server.set_latency(timedelta(seconds=0.2))
    began = time.monotonic()
    client.head_object(Bucket="one", Key="k")
    slow = time.monotonic() - began
    server.set_latency(timedelta(0))
    assert slow >= 0.2


def test_it_counts_its_requests_and_its_cpu(server: MemoryServer, client: Any) -> None:
    def stats() -> dict[str, float]:
        with urllib.request.urlopen(f"{server.endpoint_url}/_stats", timeout=10) as answer:
            return json.load(answer)

    before = stats()
    client.head_bucket(Bucket="one")
    assert stats()["requests"] == before["requests"] + 1
    assert server.read_cpu_seconds() > 0


@pytest.mark.parametrize(
    ("head", "length"),
    [
        ("GET / HTTP/1.1", 0),
        ("PUT / HTTP/1.1\r\nContent-Length: 12", 12),
        ("PUT / HTTP/1.1\r\ncontent-length: -1", None),
        ("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked", None),
    ],
)
def test_a_length_that_nobody_understands_is_not_guessed(head: str, length: int | None) -> None:
    assert read_length(head) == length


def test_it_leaves_neither_process_nor_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with MemoryServer() as server:
        pid = server.pid
        assert is_running(pid)
    assert not is_running(pid)
    assert not list(tmp_path.iterdir())
