"""The servers that tests run against: one database for each test, two buckets for each test, both thrown away."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import psycopg
import pytest
from botocore.config import Config
from psycopg import sql
from psycopg.rows import DictRow, dict_row

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.postgres_programs import (
    choose_postgres_binaries,
    find_postgres_binaries,
    read_version,
    run_program,
)
from rowferry_lab.servers.s3_servers import S3Server
from rowferry_lab.servers.server_process import choose_account
from support.checkout import ROOT
from support.postgres.ordinary import administrator, drop_database, make_own_database, ordinary_postgres

OLDEST_POSTGRES = 14
TEMPLATE = "rowferry_template"
MEMORY = Path("/dev/shm")
MANY = 50
"""Objects to remove in one request; few are removed one by one, since not every key can be written in its XML."""
SMALL_BYTES = 1024**2
"""A bucket with less is not emptied after its test: its server ends with the tests, and each request takes time."""
ENOUGH_BYTES = 3 * 1024**3
TEST_SETTINGS = {"max_prepared_transactions": "4", "autovacuum": "off", "jit": "on"}
"""What a test holds locked, and what the planner knows of its tables, must not depend on when the daemon passes by.

JIT is on as it is at users': what is compiled there is compiled here, where the installation can.
"""


def find_installations() -> dict[int, Path]:
    """Return the programs of the versions of PostgreSQL to test with, the one that most tests take first.

    ROWFERRY_TEST_POSTGRES names them; without it, it is the newest that is here. `make test-versions` asks the others.
    """
    found = find_programs()
    named = [int(version) for version in os.environ.get("ROWFERRY_TEST_POSTGRES", "").split()]
    usable = [version for version in found if version >= OLDEST_POSTGRES]
    return {version: found[version] for version in named or sorted(usable)[-1:]}


def find_programs() -> dict[int, Path]:
    """Return the programs of each version that is here: embedded, of the machine, or fetched for the matrix."""
    fetched = filter(is_runnable, sorted((ROOT / ".tools" / "postgres").glob("*/bin")))
    found: dict[int, Path] = {}
    for binaries in (*find_postgres_binaries(), *fetched):
        found.setdefault(read_version(binaries), binaries)
    return found


def is_runnable(binaries: Path) -> bool:
    """Return whether the account that servers run as may run these programs: it may not enter every checkout."""
    try:
        run_program(binaries / "postgres", "--version", account=choose_account(), folder=Path("/"))
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


INSTALLATIONS = find_installations()
POSTGRES = next(iter(INSTALLATIONS.values()), None)
"""The programs of the PostgreSQL that tests take which do not ask for each version."""


@cache
def find_distribution_postgres() -> tuple[int, Path] | None:
    """Return version and programs of a PostgreSQL as distributions build it, with TLS, JIT and ICU; None without any.

    One of those under test comes first.
    """
    for version, binaries in (INSTALLATIONS | find_programs()).items():
        without_tls = b"SSL is not supported by this build" in (binaries / "postgres").read_bytes()
        if version >= OLDEST_POSTGRES and not without_tls:
            return version, binaries
    return None


def find_psql() -> Path:
    """Return a psql: of the PostgreSQL under test, or of any other, since some packages hold only a server."""
    for folder in (*INSTALLATIONS.values(), *find_postgres_binaries()):
        if (folder / "psql").exists():
            return folder / "psql"
    pytest.skip("there is no psql here")


def find_versitygw() -> Path | None:
    """Return the versitygw that `make test` built, or the one on PATH; None when there is neither."""
    built = ROOT / ".tools" / "bin" / "versitygw"
    on_path = shutil.which("versitygw")
    return built if built.exists() else Path(on_path) if on_path else None


QUICK_SERVER = "versitygw" if find_versitygw() else "moto"
"""The S3 server of a test that needs no certain one."""


class DatabaseServers:
    """The PostgreSQL servers of this test process, each started at its first use, with an initialised template."""

    def __init__(self, until: ExitStack) -> None:
        self._until = until
        self._servers: dict[Path, EmbeddedPostgres] = {}
        self._copies: dict[int, sql.Composed] = {}

    @contextmanager
    def fresh_database(self, binaries: Path | None) -> Iterator[str]:
        """Yield the DSN of a database of its own to which `rowferry init` has been applied; drop it afterwards.

        It belongs to the ordinary role of the DSN.
        """
        server = self._find_or_start(binaries or choose_postgres_binaries())
        name = f"test_{uuid4().hex}"
        try:
            yield make_own_database(server.dsn(), name, self._copies[server.port])
        finally:
            drop_database(server.dsn(), name)

    def _find_or_start(self, binaries: Path) -> EmbeddedPostgres:
        if binaries not in self._servers:
            with temporary_folders_in_memory():
                server = self._until.enter_context(ordinary_postgres(binaries=binaries, settings=TEST_SETTINGS))
            make_schema(make_own_database(server.dsn(), TEMPLATE))
            self._copies[server.port] = choose_copy(server)
            self._servers[binaries] = server
        return self._servers[binaries]


def choose_copy(server: EmbeddedPostgres) -> sql.Composed:
    """Return how to copy the template.

    From PostgreSQL 15 on, copying its files has to be asked for: it is seven times faster.
    """
    with administrator(server.dsn()) as connection:
        strategy = sql.SQL("strategy file_copy" if connection.info.server_version >= 150_000 else "")
    return sql.SQL("template {} {}").format(sql.Identifier(TEMPLATE), strategy)


@contextmanager
def temporary_folders_in_memory() -> Iterator[None]:
    """Make temporary folders in memory, where there is plenty of it: a database a test is a thousand files a test."""
    before = tempfile.tempdir
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH_BYTES and not is_noexec(MEMORY):
        tempfile.tempdir = str(MEMORY)
    try:
        yield
    finally:
        tempfile.tempdir = before


def is_noexec(folder: Path) -> bool:
    """Return whether programs may not run there, as copies of PostgreSQL's may have to."""
    return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)


def make_schema(dsn: str) -> None:
    """Prepare a database as `rowferry init` does."""
    from rowferry.db.schema import initialise

    with psycopg.Connection[DictRow].connect(dsn, row_factory=dict_row) as connection:
        initialise(connection)


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
