import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import pytest
from botocore.credentials import Credentials

from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    ObjectNotFound,
    ObjectRejected,
    ServerFault,
    SideFault,
    Throttled,
    Unreachable,
    UsageError,
)
from rowferry.plan import LegacySide, ProductionSide, SideName
from rowferry.s3.boto import Bucket, open_bucket
from support.s3.buckets import Buckets
from support.s3.stand_in import StandIn, answer, refuse

KEYS = Credentials("AK", "SK")


@contextmanager
def opened(buckets: Buckets, name: SideName = "production", *, secret_key: str | None = None) -> Iterator[Bucket]:
    bucket = buckets.legacy if name == "legacy" else buckets.production
    side = (LegacySide if name == "legacy" else ProductionSide)(bucket, endpoint_url=buckets.server.endpoint_url)
    with open_bucket(side, Credentials(buckets.server.access_key, secret_key or buckets.server.secret_key)) as found:
        yield found


@contextmanager
def facing(server: StandIn, bucket: str = "bucket") -> Iterator[Bucket]:
    with open_bucket(ProductionSide(bucket, endpoint_url=server.endpoint_url), KEYS) as found:
        yield found


def test_a_bucket_that_is_there_passes_and_one_that_is_not_is_not_found(buckets: Buckets) -> None:
    with opened(buckets) as bucket:
        bucket.check_exists()
    with opened(replace(buckets, production="no-such-bucket")) as bucket:
        with pytest.raises(BucketNotFound, match="no-such-bucket"):
            bucket.check_exists()
        with pytest.raises(BucketNotFound):
            bucket.count_objects()


def test_a_wrong_secret_is_refused_access(versitygw_buckets: Buckets) -> None:
    with opened(versitygw_buckets, secret_key="wrong") as bucket:
        with pytest.raises(AccessDenied):
            bucket.check_exists()
        with pytest.raises(SideFault, match="secret key"):
            bucket.count_objects()


def test_objects_are_put_read_and_counted_but_never_put_into_the_legacy_bucket(buckets: Buckets) -> None:
    with opened(buckets) as bucket:
        assert bucket.count_objects() == 0
        for key in ("a b+c/\u00e9", "a/1", "a/2"):
            bucket.put(key, b"content")
        facts = bucket.head("a b+c/\u00e9")
        assert (facts.size_bytes, facts.etag) == (7, "9a0364b9e99bb480dd25e1f0284c8555")
        assert bucket.get("a b+c/\u00e9") == b"content"
        for read in (bucket.head, bucket.get):
            with pytest.raises(ObjectNotFound):
                read("a b+c/gone")
        assert (bucket.count_objects(), bucket.count_objects("a/")) == (3, 2)
    buckets.client.put_object(Bucket=buckets.legacy, Key="k", Body=b"old")
    with opened(buckets, "legacy") as bucket:
        with pytest.raises(ObjectRejected, match="ever written to the legacy bucket"):
            bucket.put("k", b"new")
        assert bucket.get("k") == b"old"


def list_page(*keys: str, next_token: str | None = None) -> bytes:
    contents = "".join(f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in keys)
    more = f"<NextContinuationToken>{next_token}</NextContinuationToken>" if next_token else ""
    truncated = str(next_token is not None).lower()
    return f"<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{more}{contents}</ListBucketResult>".encode()


def test_a_long_listing_is_counted_page_by_page() -> None:
    counts: list[int] = []
    pages = answer(200, list_page("a", "b", next_token="t1")), answer(200, list_page("c"))
    with StandIn(*pages) as server, facing(server) as bucket:
        assert bucket.count_objects("p/", counts.append) == 3
    assert counts == [2, 3]
    assert ["continuation-token=t1" in line for line in server.request_lines] == [False, True]


CLASSES = (
    (503, "SlowDown", Throttled),
    (500, "InternalError", ServerFault),
    (403, "AccessDenied", AccessDenied),
    (400, "InvalidArgument", ObjectRejected),
    (404, "NoSuchKey", ObjectNotFound),
)


def test_what_botocore_raises_becomes_a_class_of_ours(subtests: pytest.Subtests) -> None:
    for status, code, expected in CLASSES:
        with subtests.test(code), StandIn(refuse(status, code)) as server, facing(server) as bucket:
            with pytest.raises(expected) as raised:
                bucket.get("k")
            assert type(raised.value) is expected
            assert len(server.requests) <= 2
    with StandIn(answer(200, b"<html>hello</html")) as server, facing(server) as bucket, pytest.raises(ServerFault):
        bucket.count_objects()


def test_a_silent_host_and_a_bucket_name_that_s3_does_not_allow_are_each_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    side = ProductionSide("bucket", endpoint_url=url)
    with open_bucket(side, KEYS) as bucket:
        with pytest.raises(Unreachable, match=url) as raised:
            bucket.check_exists()
        assert "\n" not in str(raised.value)
        assert raised.value.code == "EndpointConnectionError"
    msgspec.structs.force_setattr(side, "bucket", "no such bucket")  # which a plan never holds
    with open_bucket(side, KEYS) as bucket, pytest.raises(UsageError, match=r"production.bucket 'no such bucket'"):
        bucket.check_exists()
