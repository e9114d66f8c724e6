"""The stand-in of the benches answers as S3 would, as far as those who are measured against it ask."""

import hashlib
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from bench.stage import StandIn, stand_in
from bench.stand_in_store import key_of

BODY_BYTES = 300_000
SOURCE = {"Bucket": "legacy", "Key": key_of(1)}


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    with stand_in(1, f"--body-bytes={BODY_BYTES}", "--objects=1500") as server:
        yield server


@pytest.fixture(scope="module")
def s3(server: StandIn) -> Iterator[Any]:
    client = boto3.client(
        "s3",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
        config=Config(retries={"total_max_attempts": 1}),
    )
    yield client
    client.close()


def test_a_copy_makes_an_object_that_is_there_from_then_on(s3: Any) -> None:
    with pytest.raises(ClientError, match="404"):
        s3.head_object(Bucket="production", Key="avatar/copied.png")
    answer = s3.copy_object(Bucket="production", Key="avatar/copied.png", CopySource=SOURCE)
    legacy = s3.head_object(**SOURCE)
    assert answer["CopyObjectResult"]["ETag"] == legacy["ETag"]
    assert s3.head_object(Bucket="production", Key="avatar/copied.png")["ContentLength"] == BODY_BYTES


def test_a_copy_over_an_object_is_refused_where_the_condition_says_so(s3: Any) -> None:
    key = "avatar/twice.png"
    s3.copy_object(Bucket="production", Key=key, CopySource=SOURCE, IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.copy_object(Bucket="production", Key=key, CopySource=SOURCE, IfNoneMatch="*")


def test_objects_are_read_whole_and_in_ranges(s3: Any) -> None:
    whole = s3.get_object(**SOURCE)
    body = whole["Body"].read()
    assert len(body) == BODY_BYTES
    assert whole["ETag"].strip('"') == hashlib.md5(body).hexdigest()
    part = s3.get_object(**SOURCE, Range="bytes=100-299")
    assert part["Body"].read() == body[100:300]
    assert part["ContentRange"] == f"bytes 100-299/{BODY_BYTES}"


def test_an_upload_in_parts_has_the_etag_that_s3_would_give(s3: Any) -> None:
    where = {"Bucket": "production", "Key": "avatar/parts.png"}
    upload = {**where, "UploadId": s3.create_multipart_upload(**where)["UploadId"]}
    bodies = [b"first" * 2000, b"second"]
    parts = [
        {"PartNumber": number, "ETag": s3.upload_part(**upload, PartNumber=number, Body=body)["ETag"]}
        for number, body in enumerate(bodies, 1)
    ]
    done = s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    digests = b"".join(hashlib.md5(body).digest() for body in bodies)
    assert done["ETag"].strip('"') == f"{hashlib.md5(digests).hexdigest()}-2"
    assert s3.head_object(**where)["ContentLength"] > 0


def test_a_listing_tells_every_legacy_object_once_page_by_page(s3: Any) -> None:
    pages = list(s3.get_paginator("list_objects_v2").paginate(Bucket="legacy", Prefix="image/"))
    keys = [item["Key"] for page in pages for item in page["Contents"]]
    assert len(pages) == 2
    assert keys == sorted(keys) == [key_of(number) for number in range(1, 1501)]


def test_it_states_its_requests_and_its_cpu(server: StandIn, s3: Any) -> None:
    before = server.read_stats()
    s3.head_object(**SOURCE)
    after = server.read_stats()
    assert after["requests"] == before["requests"] + 2
    assert after["cpu_seconds"] >= before["cpu_seconds"]
