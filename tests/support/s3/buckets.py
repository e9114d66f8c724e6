"""Two buckets for each test, in an S3 server that many tests share."""

import shutil
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import boto3
from botocore.config import Config

from rowferry.errors import UsageError
from rowferry_lab.servers.s3_servers import S3Server, VersityServer, check_extended_attributes
from support.checkout import ROOT
from support.postgres.servers import find_memory
from support.s3.fake_s3 import FakeAddress
from support.s3.quick_requests import QuickRequests, StoreRequests

MANY = 50
"""Objects to remove in one request; few are removed one by one, since not every key can be written in its XML."""
SMALL_BYTES = 1024**2
"""A bucket with less is not emptied after its test: its server ends with the tests, and each request takes time."""


def find_versitygw() -> Path | None:
    """Return the versitygw that `make servers` built, or the one on PATH; None when there is neither."""
    built = ROOT / ".tools" / "bin" / "versitygw"
    on_path = shutil.which("versitygw")
    return built if built.exists() else Path(on_path) if on_path else None


def find_memory_for_objects() -> Path | None:
    """Return the folder in memory whose files can have attributes, as versitygw needs them (from Linux 6.6 on)."""
    memory = find_memory()
    with suppress(UsageError), TemporaryDirectory(dir=memory) as folder:
        check_extended_attributes(Path(folder))
        return memory
    return None


class VersityInMemory(VersityServer):
    """versitygw with its objects in memory, where that can be: to remove one from a disk takes twenty times as long."""

    parent = find_memory_for_objects()


QUICK_SERVER = "versitygw" if find_versitygw() else "moto"
"""The S3 server of a test that needs no certain one."""


class S3Access:
    """How tests reach a server: by quick requests, and by a boto3 client for all that is rare.

    `bundle`: the authorities that they trust.
    """

    def __init__(self, server: S3Server, bundle: Path | None = None) -> None:
        self.server, self._bundle = server, bundle
        tls = bundle and ssl.create_default_context(cafile=bundle)
        is_here = isinstance(server, FakeAddress)
        self.quick = StoreRequests(server) if is_here else QuickRequests(server, tls)

    @cached_property
    def client(self) -> Any:
        """Made at its first use: that costs as much as ten of its requests."""
        return connect_s3(self.server, bundle=self._bundle)

    def close(self) -> None:
        self.quick.close()
        if "client" in vars(self):
            self.client.close()


@dataclass(frozen=True, slots=True)
class Buckets:
    """Two empty buckets of one server."""

    server: S3Server
    access: S3Access
    legacy: str
    production: str

    @property
    def client(self) -> Any:
        return self.access.client


def connect_s3(server: S3Server, *, secret_key: str | None = None, bundle: Path | None = None) -> Any:
    """Return a boto3 client of the server that tries once; with the server's own secret unless another is given."""
    return boto3.client(
        "s3",
        endpoint_url=server.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=server.access_key,
        aws_secret_access_key=secret_key or server.secret_key,
        verify=bundle and str(bundle),
        config=Config(
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
            max_pool_connections=32,
            request_checksum_calculation="when_supported" if server.takes_checksums else "when_required",
        ),
    )


_accesses: dict[S3Server, S3Access] = {}
"""To each server of the whole session."""


@contextmanager
def running_for_all(server: S3Server) -> Iterator[S3Server]:
    """Run a server for all tests of this process."""
    with server, reached_by_all(server):
        yield server


@contextmanager
def reached_by_all(server: S3Server) -> Iterator[None]:
    """Let all tests of this process reach a server in one way, until the block ends."""
    with closing(S3Access(server)) as access:
        _accesses[server] = access
        yield
        del _accesses[server]


@contextmanager
def fresh_buckets(server: S3Server) -> Iterator[Buckets]:
    """Yield two unused buckets; what is large in them is removed afterwards."""
    with ExitStack() as until:
        access = _accesses.get(server) or until.enter_context(closing(S3Access(server)))
        unique = uuid4().hex[:12]
        buckets = Buckets(server, access, f"legacy-{unique}", f"production-{unique}")
        for name in (buckets.legacy, buckets.production):
            access.quick.create_bucket(name)
        try:
            yield buckets
        finally:
            for name in (buckets.legacy, buckets.production):
                if access.quick.forget_bucket(name) > SMALL_BYTES:
                    remove_bucket(access.client, name)


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
