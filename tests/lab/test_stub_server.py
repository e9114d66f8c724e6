"""The servers of the benches keep what their clients need: conditions, sizes, listings, parts, and what they count."""

import hashlib
import urllib.error
import urllib.request
from email.message import Message
from typing import Any

import boto3
import pytest
from botocore.config import Config

from bench.baselines import ACCOUNT
from bench.memory_server import MemoryServer, find_obstacle
from bench.servers import BenchServer
from bench.stub_server import StubServer, build_stub

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module", autouse=True)
def _stub() -> None:
    if not build_stub():
        pytest.skip("rowferry-stub is not here: there is no go")


def connect(server: BenchServer, certificate: str | None = None) -> Any:
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
    keys = {
        "aws_access_key_id": ACCOUNT["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": ACCOUNT["AWS_SECRET_ACCESS_KEY"],
    }
    place = {"endpoint_url": server.endpoint_url, "region_name": "us-east-1", "verify": certificate}
    return boto3.client("s3", config=config, **keys, **place)


def ask(server: StubServer, method: str, path: str, **headers: str) -> tuple[int, Message]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"{server.endpoint_url}{path}", method=method, headers=named)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers


def test_only_a_written_object_is_found_outside_the_legacy_bucket() -> None:
    with StubServer("-size=1234") as server:
        assert ask(server, "HEAD", "/production/a")[0] == 404
        assert ask(server, "PUT", "/production/a", x_amz_copy_source="/legacy/a")[0] == 200
        status, headers = ask(server, "HEAD", "/production/a")
        assert (status, headers["Content-Length"]) == (200, "1234")
        assert ask(server, "HEAD", "/legacy/b.png")[1]["ETag"] == headers["ETag"]


def test_a_second_write_under_the_condition_is_refused() -> None:
    with StubServer() as server:
        statuses = [ask(server, "PUT", "/production/a", If_None_Match="*")[0] for _ in range(2)]
        assert statuses == [200, 412]


def test_a_listing_goes_on_where_it_ended() -> None:
    with StubServer("-keys=2500") as server:
        pages = connect(server).get_paginator("list_objects_v2")
        keys = [one["Key"] for page in pages.paginate(Bucket="legacy", Prefix="image/") for one in page["Contents"]]
        assert keys == [f"image/{number:09}.png" for number in range(1, 2501)]
        assert connect(server).list_objects_v2(Bucket="production")["KeyCount"] == 0


def test_a_range_is_answered_with_its_bytes() -> None:
    with StubServer("-size=100000") as server:
        found = connect(server).get_object(Bucket="legacy", Key="image/1.png", Range="bytes=99990-200000")
        assert found["ContentRange"] == "bytes 99990-99999/100000"
        assert found["Body"].read() == b"x" * 10


def test_parts_become_an_object_with_the_etag_of_s3_over_tls_as_well() -> None:
    with StubServer("-size=15", tls=True) as server:
        s3, place = connect(server, str(server.certificate)), {"Bucket": "production", "Key": "avatar/1.png"}
        upload = s3.create_multipart_upload(**place)["UploadId"]
        etags = [
            s3.upload_part(**place, UploadId=upload, PartNumber=number, Body=b"x" * size)["ETag"]
            for number, size in ((1, 10), (2, 5))
        ]
        digests = [hashlib.md5(b"x" * size).digest() for size in (10, 5)]
        assert etags == [f'"{digest.hex()}"' for digest in digests]
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, 1)]
        s3.complete_multipart_upload(**place, UploadId=upload, MultipartUpload={"Parts": parts})
        assert s3.head_object(**place)["ETag"] == f'"{hashlib.md5(b"".join(digests)).hexdigest()}-2"'
        assert server.read_stats()["objects"] == 1


@pytest.mark.skipif(find_obstacle() is not None, reason=f"versitygw is not here: {find_obstacle()}")
def test_the_server_in_memory_has_its_objects_and_counts_what_is_written() -> None:
    with MemoryServer(1234, 5) as server:
        s3 = connect(server)
        listed = s3.list_objects_v2(Bucket="legacy")["Contents"]
        assert [(one["Key"], one["Size"]) for one in listed] == [(f"image/00000000{n}.png", 1234) for n in range(1, 6)]
        assert server.read_stats()["objects"] == 0
        for number in (1, 2, 3):
            source = {"Bucket": "legacy", "Key": f"image/00000000{number}.png"}
            s3.copy_object(Bucket="production", Key=f"avatar/{number}.png", CopySource=source)
        assert server.read_stats()["objects"] == 3
