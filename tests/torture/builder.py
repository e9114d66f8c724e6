"""Builds the world of one scenario: a PostgreSQL and an S3 server of its own, buckets, a plan, an auditor at work."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import MotoServer, S3Server
from support.entries.migration import Migration
from support.postgres.ordinary import SUPERUSER, add_owner
from support.postgres.servers import make_schema, temporary_folders_in_memory
from support.s3.buckets import Buckets, S3Access, VersityInMemory, find_versitygw
from torture.auditor import Auditor
from torture.oracle import Oracle
from torture.world import World

PART_BYTES = 5 * 1024 * 1024
"""The least that S3 takes for a part: what is larger travels part by part, in every scenario."""


@contextmanager
def make_world(
    seed: int,
    *,
    postgres: EmbeddedPostgres | None = None,
    dsn: str | None = None,
    settings: Mapping[str, str] | None = None,
    plan: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[World]:
    """Yield a world without entries, its auditor at work; everything of it is ended and removed afterwards.

    `postgres` is a running server of the scenario's own, `dsn` a way to its database for workers and auditor alike;
    left out, the world has its own server, with `settings`. `plan` is laid over the plan, table by table
    (`{"migration": {"transfer": "stream"}}`).
    """
    with ExitStack() as until:
        if postgres is None:
            with temporary_folders_in_memory():
                postgres = until.enter_context(EmbeddedPostgres(user=SUPERUSER, settings=settings))
                dsn = add_owner(postgres)
        dsn = dsn or postgres.dsn()
        folder = Path(until.enter_context(TemporaryDirectory(prefix="rowferry-torture-")))
        make_schema(dsn)
        s3 = until.enter_context(make_s3_server())
        buckets = make_buckets(s3, until)
        migration = until.enter_context(closing(Migration(dsn, buckets, buckets, folder)))
        migration.plan["migration"]["multipart_threshold_bytes"] = PART_BYTES
        for name, table in (plan or {}).items():
            migration.plan.setdefault(name, {}).update(table)
        oracle = Oracle()
        auditor = Auditor(dsn, s3, migration.legacy, migration.production, oracle, seed=seed)
        until.enter_context(auditor)
        yield World(seed, folder, postgres, s3, migration, oracle, auditor)


def make_s3_server() -> S3Server:
    """Return versitygw, which checks signatures and digests, or moto where there is no versitygw."""
    program = find_versitygw()
    return VersityInMemory(program) if program else MotoServer()


def make_buckets(server: S3Server, until: ExitStack) -> Buckets:
    access = until.enter_context(closing(S3Access(server)))
    buckets = Buckets(server, access, "legacy", "production")
    for name in (buckets.legacy, buckets.production):
        access.quick.create_bucket(name)
    return buckets
