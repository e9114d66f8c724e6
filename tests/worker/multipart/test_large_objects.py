"""Objects too large for one request move part by part, keep what describes them, and leave nothing half done."""

from collections.abc import Callable, Iterator

import pytest

from rowferry_worker import migration
from rowferry_worker.copying import server_copy, stream_copy
from support.entries.migration import Migration
from support.s3.buckets import Buckets
from support.s3.request_log import LoggedRequest, RequestLog, logged

MIB = 1024 * 1024
PART_BYTES = 5 * MIB
"""The smallest part that S3 takes, unless it is the last."""
BODY = b"0123456789abcdef" * (11 * MIB // 16) + b"the rest"
PROPERTIES = {
    "ContentType": "video/mp4",
    "CacheControl": "max-age=3600",
    "ContentDisposition": "inline",
    "Metadata": {"author": "me"},
}


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_copy, "STREAM_PART_BYTES", PART_BYTES)
    monkeypatch.setattr(stream_copy, "MOST_BYTES", PART_BYTES)
    monkeypatch.setattr(server_copy, "COPY_PART_BYTES", PART_BYTES)
    monkeypatch.setattr(migration, "STREAM_PART_BYTES", PART_BYTES)


@pytest.fixture(params=["server", "stream"])
def transfer(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def log(buckets: Buckets) -> Iterator[RequestLog]:
    """A proxy in front of the server that refuses to copy large objects in one piece, as S3 does from 5 GiB on."""
    with logged(buckets.server.endpoint_url) as log:
        yield log


@pytest.fixture
def large(log: RequestLog, buckets: Buckets, transfer: str, make_migration: Callable[..., Migration]) -> Migration:
    """A migration of one large object with properties and tags."""
    migration = make_migration(buckets, buckets)
    migration.plan["migration"]["transfer"] = transfer
    migration.reach_through(log.endpoint_url)
    migration.add(1, "film ä.mp4", BODY, **PROPERTIES, Tagging="kind=film&length=long+one")
    migration.enqueue()
    return migration


@pytest.fixture(autouse=True)
def _refuse_to_copy(log: RequestLog) -> Iterator[None]:
    def is_whole_copy(seen: LoggedRequest) -> bool:
        return "x-amz-copy-source" in seen.headers and not seen.query

    with log.refusing(is_whole_copy, 400, "EntityTooLarge"):
        yield


def count_parts(log: RequestLog) -> int:
    return sum("partNumber=" in seen.query for seen in log.seen)


def test_a_large_object_moves_part_by_part_with_its_properties(large: Migration, log: RequestLog) -> None:
    large.work()
    assert large.counts() == {"migrated": 1}
    assert count_parts(log) >= 3
    found = large.production.head("avatar/film ä.mp4")
    assert {name: found[name] for name in PROPERTIES} == PROPERTIES
    assert large.production.tags("avatar/film ä.mp4") == {"kind": "film", "length": "long one"}
    assert large.production.open_uploads() == []
    assert large.batch()["bytes"] == len(BODY)
    large.audit()


def test_a_large_object_that_was_moved_before_is_recognised(large: Migration) -> None:
    """Though its ETag, made of parts, is no digest of its bytes."""
    large.production.put("avatar/film ä.mp4", BODY)
    large.work()
    assert large.counts() == {"kept": 1}
    large.audit()


def test_a_large_object_that_differs_in_its_last_byte_is_a_conflict(large: Migration) -> None:
    large.production.put("avatar/film ä.mp4", BODY[:-1] + b"T")
    large.work()
    assert large.counts() == {"conflict": 1}
