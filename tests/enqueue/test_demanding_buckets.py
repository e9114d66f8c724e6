"""Buckets that take nothing without what the plan says, or without a digest: the check is green, all objects move."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from support.entries.checks import check
from support.entries.migration import Migration
from support.s3.buckets import Buckets
from support.s3.request_log import LoggedRequest, RequestLog, logged

MIB = 1024 * 1024
DEMANDS: dict[str, dict[str, str]] = {
    "encryption": {"x-amz-server-side-encryption": "AES256"},
    "acl": {"x-amz-acl": "public-read"},
    "storage_class": {"x-amz-storage-class": "STANDARD_IA"},
}
ENDS = {"transfer by the server": True, "transfer by the worker": False}


@pytest.fixture
def log(moto_buckets: Buckets) -> Iterator[RequestLog]:
    with logged(moto_buckets.server.endpoint_url) as log:
        yield log


@pytest.fixture
def demanding(moto_migration: Migration, log: RequestLog) -> Migration:
    """An empty migration on a server that keeps what the plan says of objects."""
    moto_migration.reach_through(log.endpoint_url)
    return moto_migration


def lacks(demanded: dict[str, str]) -> Callable[[LoggedRequest], bool]:
    def lacks_some(seen: LoggedRequest) -> bool:
        begins_object = seen.writes_object or (seen.method == "POST" and seen.query.startswith("uploads"))
        return begins_object and any(seen.headers.get(name) != value for name, value in demanded.items())

    return lacks_some


@contextmanager
def demanding_digests(log: RequestLog) -> Iterator[None]:
    """Refuse bodies as a bucket with Object Lock and default retention does."""
    words = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters"
    body = f"<Error><Code>InvalidRequest</Code><Message>{words}</Message></Error>".encode()
    head = f"HTTP/1.1 400 As Told\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    given = {"x-amz-copy-source", "content-md5"}
    with log.answering(lambda seen: seen.method == "PUT" and not given & set(seen.headers), head + body):
        yield


def make(migration: Migration, *, server_side: bool) -> Migration:
    """Give it a small and a large object."""
    migration.plan["migration"] |= {
        "transfer": "server" if server_side else "stream",
        "multipart_threshold_bytes": 5 * MIB,
    }
    migration.add(1, "small.png")
    migration.add(2, "large.mp4", bytes(range(256)) * (6 * MIB // 256))
    return migration


def list_findings(migration: Migration) -> list[tuple[str, str]]:
    return [(finding.level, finding.what) for finding in check(migration)]


def check_and_move(migration: Migration, usual: list[tuple[str, str]]) -> None:
    """Check and move; `usual`: what a check finds where the bucket demands nothing."""
    assert list_findings(migration) == usual
    assert migration.migrate() == {"migrated": 2}, migration.failures()
    migration.audit()


@pytest.mark.parametrize("server_side", ENDS.values(), ids=ENDS)
def test_a_bucket_that_demands_what_the_plan_says_takes_probes_and_objects(
    demanding: Migration, log: RequestLog, server_side: bool
) -> None:
    migration = make(demanding, server_side=server_side)
    demanded = {name: value for headers in DEMANDS.values() for name, value in headers.items()}
    migration.plan["production"] |= {key: next(iter(headers.values())) for key, headers in DEMANDS.items()}
    usual = list_findings(migration)
    with log.refusing(lacks(demanded), 403, "AccessDenied"):
        check_and_move(migration, usual)


@pytest.mark.parametrize("server_side", ENDS.values(), ids=ENDS)
def test_a_bucket_that_demands_digests_takes_probes_and_objects(
    demanding: Migration, log: RequestLog, server_side: bool
) -> None:
    migration = make(demanding, server_side=server_side)
    usual = list_findings(migration)
    with demanding_digests(log):
        check_and_move(migration, usual)
