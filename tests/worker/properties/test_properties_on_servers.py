"""Real S3 servers and what the plan says of objects: it is so, or `check` and the worker say that it is not."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from conformance.plain import make_buckets
from rowferry_lab.servers.s3_servers import S3Server
from support.entries.checks import problems
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.s3.buckets import S3Access
from support.s3.servers import SERVERS, running_server

pytestmark = pytest.mark.by_day("versitygw*", "moto*")

PART_BYTES = 5 * 1024 * 1024
KEEP_ACLS = {"moto", "seaweedfs", "ceph"}
DROP_CONTENT_HEADERS = {"gofakes3"}
"""Of its own: Cache-Control."""
CANNOT_COPY_PARTS = {"gofakes3"}
ENCRYPT = {"moto", "gofakes3"}
"""As they are set up here, and as far as they tell."""
NIGHTLY = {"ceph", "swift", "juicefs", "minio", "seaweedfs"}
"""Servers that take long to start, or do nothing that moto, versitygw or gofakes3 does not."""
PUBLIC = {("http://acs.amazonaws.com/groups/global/AllUsers", "READ")}


def mark(name: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a server: its tests run in one process."""
    return [pytest.mark.xdist_group(name), *([pytest.mark.soak] if name in NIGHTLY else [])]


@pytest.fixture(scope="module", params=[pytest.param(name, marks=mark(name)) for name in SERVERS])
def server(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    with running_server(request.param) as server:
        yield server


@pytest.fixture(params=["server", "stream"])
def site(
    request: pytest.FixtureRequest, server: S3Server, make_migration: Callable[..., Migration]
) -> Iterator[Migration]:
    """A migration of one small object and, where the server can, one in parts."""
    with closing(S3Access(server)) as access:
        buckets = make_buckets(access)
        migration = make_migration(buckets, buckets)
        migration.plan["migration"] |= {"transfer": request.param, "multipart_threshold_bytes": PART_BYTES}
        migration.add(1, "1.png", b"small", ContentType="image/png", ContentDisposition="attachment")
        if request.param == "stream" or server.name not in CANNOT_COPY_PARTS:
            migration.add(2, "2.png", bytes(PART_BYTES + 1), ContentType="image/png")
        yield migration


def keys_of(migration: Migration) -> list[str]:
    return [f"{TO}{row_id}.png" for row_id in migration.rows()]


def grants_of(migration: Migration, key: str) -> set[tuple[str, str]]:
    acl = migration.production.client.get_object_acl(Bucket=migration.production.bucket, Key=key)
    return {(grant["Grantee"]["URI"], grant["Permission"]) for grant in acl["Grants"] if "URI" in grant["Grantee"]}


@pytest.mark.by_day("versitygw-server", "moto-stream")
def test_public_objects_are_public_or_no_row_moves(server: S3Server, site: Migration) -> None:
    site.plan["production"]["acl"] = "public-read"
    told = problems(site)
    site.migrate()
    if server.name in KEEP_ACLS:
        assert told == []
        assert site.counts() == {"migrated": len(site.bodies)}
        assert [grants_of(site, key) for key in keys_of(site)] == [PUBLIC] * len(site.bodies)
        site.audit()
    else:
        assert told
        assert all("ACL" in words or "does not make an object public-read" in words for words in told), told
        assert site.counts() == {"failed": len(site.bodies)}
        assert {failure["reason"].rpartition(" ")[2] for failure in site.failures()} == {"AclLost"}
        site.audit(legacy_left=site.bodies)
        for key in site.production.listing():
            assert site.production.read(key) == site.bodies[key.removeprefix(TO).partition(".")[0]]


@pytest.mark.by_day("versitygw-server", "moto-stream")
def test_content_headers_are_those_of_the_plan_and_the_others_are_kept(server: S3Server, site: Migration) -> None:
    site.plan["production"] |= {"cache_control": "public, max-age=60", "tags": "none"}
    assert bool(problems(site)) == (server.name in DROP_CONTENT_HEADERS)
    assert site.migrate() == {"migrated": len(site.bodies)}
    site.audit()
    for key in keys_of(site):
        head = site.production.head(key)
        assert head["ContentType"] == "image/png"
        if server.name not in DROP_CONTENT_HEADERS:
            assert head["CacheControl"] == "public, max-age=60"
    assert site.production.head(f"{TO}1.png")["ContentDisposition"] == "attachment"


@pytest.mark.by_day("versitygw-server", "moto-stream")
def test_objects_are_encrypted_or_no_row_moves(server: S3Server, site: Migration) -> None:
    """Ceph, MinIO, Swift and SeaweedFS refuse it as they are set up here; versitygw takes it without a word."""
    site.plan["production"]["encryption"] = "AES256"
    told = problems(site)
    site.migrate()
    encrypted = [site.production.head(key).get("ServerSideEncryption") for key in site.production.listing()]
    assert bool(told) == (server.name not in ENCRYPT)
    if told:
        assert site.counts().keys() <= {"failed"}
        site.audit(legacy_left=site.bodies)
    else:
        assert site.counts() == {"migrated": len(site.bodies)}
        assert encrypted == ["AES256"] * len(site.bodies)
        site.audit()
