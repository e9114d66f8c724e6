"""Two buckets for each test, in an S3 server that many tests share."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from botocore.config import Config

from rowferry_lab.servers.s3_servers import S3Server
from support.checkout import ROOT

MANY = 50
"""Objects to remove in one request; few are removed one by one, since not every key can be written in its XML."""
SMALL_BYTES = 1024**2
"""A bucket with less is not emptied after its test: its server ends with the tests, and each request takes time."""


def find_versitygw() -> Path | None:
    """Return the versitygw that `make servers` built, or the one on PATH; None when there is neither."""
    built = ROOT / ".tools" / "bin" / "versitygw"
    on_path = shutil.which("versitygw")
    return built if built.exists() else Path(on_path) if on_path else None


QUICK_SERVER = "versitygw" if find_versitygw() else "moto"
"""The S3 server of a test that needs no certain one."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Two empty buckets of one server, and a boto3 client for it."""

    server: S3Server
    client: Any
    legacy: str
    production: str


def connect_s3(server: S3Server, *, secret_key: str | None = None) -> Any:
    """Return a boto3 client of the server that tries once; with the server's own secret unless another is given."""
    return boto3.client(
        "s3",
        endpoint_url=server.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=server.access_key,
        aws_secret_access_key=secret_key or server.secret_key,
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, max_pool_connections=32),
    )


_clients: dict[S3Server, Any] = {}
"""Of each server of the whole session the client with which tests look at it: making one costs more than a request."""


@contextmanager
def running_for_all(server: S3Server) -> Iterator[S3Server]:
    """Run a server for all tests of this process."""
    with server, closing(connect_s3(server)) as client:
        _clients[server] = client
        yield server
        del _clients[server]


@contextmanager
def fresh_buckets(server: S3Server) -> Iterator[Buckets]:
    """Yield two unused buckets; what is large in them is removed afterwards."""
    with ExitStack() as until:
        client = _clients.get(server) or until.enter_context(closing(connect_s3(server)))
        unique = uuid4().hex[:12]
        buckets = Buckets(server, client, f"legacy-{unique}", f"production-{unique}")
        for name in (buckets.legacy, buckets.production):
            client.create_bucket(Bucket=name)
        try:
            yield buckets
        finally:
            for name in (buckets.legacy, buckets.production):
                remove_large_bucket(client, name)


def remove_large_bucket(client: Any, name: str) -> None:
    """Remove a bucket that takes memory or disk of the server; a test may have removed it already."""
    with suppress(client.exceptions.NoSuchBucket):
        found = client.list_objects_v2(Bucket=name).get("Contents", [])
        if sum(item["Size"] for item in found) > SMALL_BYTES:
            remove_bucket(client, name)


def remove_bucket(client: Any, name: str) -> None:
    """Remove a bucket with all that it holds; a test may have removed it already."""
    with suppress(client.exceptions.NoSuchBucket):
        for upload in client.list_multipart_uploads(Bucket=name).get("Uploads", []):
            client.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=name):
            found = [{"Key": item["Key"]} for item in page.get("Contents", [])]
            if len(found) > MANY:
                client.delete_objects(Bucket=name, Delete={"Objects": found, "Quiet": True})
            for key in found if len(found) <= MANY else ():
                client.delete_object(Bucket=name, **key)
        client.delete_bucket(Bucket=name)
