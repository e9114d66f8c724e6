"""Production rows with a column `tenant_id`, and their objects, as `tag` finds them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from rowferry_lab.servers.s3_servers import S3Server
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.s3.buckets import Buckets, fresh_buckets, remove_bucket
from support.s3.deviations import Deviations
from support.s3.fake_s3 import FakeAddress, running_fakes

PER_TENANT = {"tier": "cold", "tenant": {"column": "tenant_id"}}


def prepare(migration: Migration, **settings: Any) -> Migration:
    migration.execute("alter table public.avatars add tenant_id text")
    migration.plan["queue"] = {"tag": {"set": PER_TENANT, **settings}}
    return migration


@contextmanager
def faked_site(make_migration: Callable[..., Migration]) -> Iterator[tuple[Migration, FakeAddress]]:
    """Yield such rows on the fake server, and it."""
    with running_fakes(Deviations()) as (server,), fresh_buckets(server) as buckets:
        yield prepare(make_migration(buckets, buckets)), server


def add(
    migration: Migration,
    row_id: int,
    tenant: str | None,
    tags: Mapping[str, str] | None = None,
    name: str | None = None,
) -> str:
    """Add a production row, and its object with these tags; return the key."""
    key = f"{TO}{name or f'{row_id}.png'}"
    if tags is not None:
        migration.production.put(key, b"body")
        if tags:
            migration.production.tag(key, tags)
    migration.execute("insert into public.avatars values (%s, %s, %s)", (row_id, key, tenant))
    return key


run = partial(Migration.run_queue, queue="tag")


@contextmanager
def versioned_buckets(server: S3Server) -> Iterator[Buckets]:
    """Yield buckets of which that of production is versioned."""
    with fresh_buckets(server) as buckets:
        client, name = buckets.client, buckets.production
        client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        yield buckets
        for version in client.list_object_versions(Bucket=name).get("Versions", []):
            client.delete_object(Bucket=name, Key=version["Key"], VersionId=version["VersionId"])
        remove_bucket(client, name)
