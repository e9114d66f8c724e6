"""A bucket with Requester Pays is told so with every request: by copies from it, checks and listings as well."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from rowferry_cli.status.counts import count_objects_of
from rowferry_lab.servers.fake_s3.http import Request
from support.entries.checks import check
from support.entries.entry_table import TO
from support.entries.estimating import FakeMigration, fake_migration
from support.entries.migration import Migration
from support.queue.queue_runs import outcomes, verify

PART_BYTES = 5 * 1024 * 1024


@contextmanager
def heard(found: FakeMigration) -> Iterator[set[tuple[str, str, bool]]]:
    """Yield the requests within the block: the side that each reads or writes, operation, whether the requester pays.

    A copy is one of both sides.
    """
    requests: set[tuple[str, str, bool]] = set()
    buckets = {found.migration.legacy.bucket: "legacy", found.migration.production.bucket: "production"}

    def hear(request: Request) -> None:
        source = (request.header(b"x-amz-copy-source") or "").removeprefix("/").split("/")[0]
        pays = request.header(b"x-amz-request-payer")
        assert pays in {None, "requester"}
        for bucket in filter(None, (request.bucket, source)):
            requests.add((buckets[bucket], request.operation, pays is not None))

    for address in (found.legacy, found.production):
        address.fake.before = hear
    try:
        yield requests
    finally:
        for address in (found.legacy, found.production):
            address.fake.before = None


@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
@pytest.mark.by_day("*-stream", "paying1-server")
@pytest.mark.parametrize("paying", [(), ("legacy",), ("production",), ("legacy", "production")])
def test_every_request_to_a_side_says_who_pays(
    make_migration: Callable[..., Migration], server_side: bool, paying: tuple[str, ...]
) -> None:
    with fake_migration(make_migration, server_side=server_side) as found:
        migration = found.migration
        for side in paying:
            migration.plan[side]["requester_pays"] = True
        migration.plan["migration"]["multipart_threshold_bytes"] = PART_BYTES
        migration.plan["production"]["acl"] = "copy"
        migration.add(1, "1.png", b"small", Tagging="kind=cat").add(2, "2.png", bytes(PART_BYTES + 1))
        with heard(found) as requests:
            assert [one.what for one in check(migration) if one.level == "problem"] == []
            migration.enqueue()
            migration.work()
            assert outcomes(verify(migration)) == {"kept": 2}
    assert migration.counts() == {"migrated": 2, "kept": 2}
    silent = {(side, operation) for side, operation, pays in requests if not pays}
    copies = {"CopyObject", "UploadPartCopy"}
    assert {side for side, operation in silent if operation not in copies}.isdisjoint(paying)
    assert {side for side, operation in silent if operation in copies}.isdisjoint(paying)
    loud = {side for side, operation, pays in requests if pays and operation not in copies}
    assert loud == set(paying)
    needed = {"HeadBucket", "ListObjectsV2", "HeadObject", "GetObject", "GetObjectTagging", "GetObjectAcl"}
    assert {operation for side, operation, _ in requests if side == "legacy"} >= needed


def test_a_count_says_so_too(make_migration: Callable[..., Migration]) -> None:
    with fake_migration(make_migration, server_side=True) as found:
        migration = found.migration
        migration.plan["production"]["requester_pays"] = True
        migration.production.put(f"{TO}1.png", b"one")
        with heard(found) as requests:
            assert count_objects_of(migration.read_plan(), within=timedelta(30))["production"].number == 1
    assert requests == {("production", "ListObjectsV2", True), ("legacy", "ListObjectsV2", False)}
