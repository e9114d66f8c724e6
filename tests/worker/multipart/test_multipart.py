"""Large objects go part by part from the plan's bound on, with digests checked, and no upload outlives a stop."""

import asyncio
import hashlib
import signal
from collections.abc import Callable, Iterator

import pytest

from rowferry.errors import ObjectDamaged
from rowferry.s3.operations import Request, complete_multipart_upload
from rowferry.s3.responses import Response
from rowferry_worker.multipart.completion import Large, Part, Upload, check_completed
from rowferry_worker.multipart.side_by_side import PartRange
from rowferry_worker.multipart.streamed_parts import StreamedParts
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.properties.settle import describe_object
from support.entries.migration import Migration
from support.processes.patient_worker import patient
from support.processes.processes import wait_for
from support.s3.buckets import QUICK_SERVER, Buckets
from support.s3.fake_buckets import composite
from support.s3.request_log import LoggedRequest, RequestLog, logged

MIB = 1024 * 1024
BOUND = 5 * MIB
"""The smallest part that S3 takes, unless it is the last."""
LARGE = b"0123456789abcdef" * (11 * MIB // 16) + b"the rest"
PROPERTIES = {
    "ContentType": "video/mp4",
    "CacheControl": "max-age=3600",
    "ContentDisposition": "inline",
    "Metadata": {"author": "me"},
}


@pytest.fixture
def log(buckets: Buckets) -> Iterator[RequestLog]:
    with logged(buckets.server.endpoint_url) as log:
        yield log


@pytest.fixture(params=["server", "stream"])
def bounded(
    request: pytest.FixtureRequest, log: RequestLog, buckets: Buckets, make_migration: Callable[..., Migration]
) -> Migration:
    """A migration whose plan has objects above 5 MiB copied part by part, by either method."""
    migration = make_migration(buckets, buckets)
    migration.plan["migration"] |= {"transfer": request.param, "multipart_threshold_bytes": BOUND}
    migration.reach_through(log.endpoint_url)
    return migration


def numbers_of_parts(log: RequestLog) -> list[str]:
    return [
        seen.query.partition("partNumber=")[2].partition("&")[0] for seen in log.seen if "partNumber=" in seen.query
    ]


def test_what_is_larger_than_the_bound_goes_part_by_part(bounded: Migration, log: RequestLog) -> None:
    bounded.add(1, "just.bin", LARGE[:BOUND])
    bounded.migrate()
    assert numbers_of_parts(log) == []
    bounded.add(2, "film ä.mp4", LARGE[: BOUND + 1], **PROPERTIES, Tagging="kind=film&length=long+one")
    bounded.add(3, "large.bin", LARGE)
    assert bounded.migrate() == {"migrated": 3}
    assert sorted(numbers_of_parts(log)) == ["1", "1", "2", "2", "3"]
    found = bounded.production.head("avatar/film ä.mp4")
    assert {name: found[name] for name in PROPERTIES} == PROPERTIES
    assert bounded.production.tags("avatar/film ä.mp4") == {"kind": "film", "length": "long one"}
    assert bounded.production.open_uploads() == []
    assert bounded.batches()[-1]["bytes"] == BOUND + 1 + len(LARGE)
    bounded.audit()


@pytest.mark.parametrize(("last", "outcome"), [(b"", "kept"), (b"T", "conflict")])
def test_a_large_object_that_stands_there_is_told_from_another(bounded: Migration, last: bytes, outcome: str) -> None:
    """Though its ETag, where it is made of parts, is no digest of its bytes."""
    bounded.add(1, "large.bin", LARGE)
    bounded.production.put("avatar/large.bin", LARGE[: len(LARGE) - len(last)] + last)
    assert bounded.migrate() == {outcome: 1}
    bounded.audit(legacy_left=[1] if last else [])


@pytest.mark.parametrize(
    ("storage_class", "keep", "sent"),
    [
        ("STANDARD_IA", True, "STANDARD_IA"),
        ("GLACIER_IR", True, "GLACIER_IR"),
        ("GLACIER", True, None),
        ("DEEP_ARCHIVE", True, None),
        ("STANDARD_IA", False, None),
    ],
)
def test_no_object_becomes_an_archive(storage_class: str, keep: bool, sent: str | None) -> None:
    """A row must never point at an object that has to be restored before it can be read."""
    headers = describe_object(Response(200, {"x-amz-storage-class": storage_class}), keep_class=keep)
    assert dict(headers).get("x-amz-storage-class") == sent


@pytest.mark.by_day(f"stream-{QUICK_SERVER}", "server-moto")
def test_a_worker_that_is_told_to_stop_leaves_its_upload_to_the_next(bounded: Migration, log: RequestLog) -> None:
    bounded.add(1, "large.bin", LARGE)
    bounded.enqueue()

    def is_second_part(seen: LoggedRequest) -> bool:
        return "partNumber=2" in seen.query

    with log.holding(is_second_part) as held:
        with bounded.workers(1, "--grace", "0", **patient(bounded.folder)) as (worker,):
            wait_for(lambda: held and bounded.execute("select from rowferry.upload_part"))
            assert bounded.production.open_uploads() == ["avatar/large.bin"]
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0
        assert bounded.production.open_uploads() == ["avatar/large.bin"]
    assert bounded.verdicts() == ["RELEASED"]
    log.seen.clear()
    bounded.work()
    assert len(numbers_of_parts(log)) < 3
    assert bounded.production.open_uploads() == []
    bounded.audit()


BODY = b"abcdef"


def send_all(read: bytes, *etags: str, **headers: str) -> list[Part]:
    """Send parts of two bytes; the servers give `read` and respond with these ETags, `md5` being the right one."""
    seen = Response(200, {"content-length": str(len(BODY)), "etag": '"x"', **headers})

    async def send(request: Request) -> Response:
        sent = dict(request.headers)
        if request.operation == "GetObject":
            first, last = sent["Range"].removeprefix("bytes=").split("-")
            told = {"etag": sent["If-Match"], "content-range": f"bytes {first}-{last}/{len(BODY)}"}
            return Response(206, told, read[int(first) : int(last) + 1])
        assert request.operation == "UploadPart"
        assert "Content-MD5" in sent
        etag = etags[int(dict(request.query)["partNumber"]) - 1]
        return Response(200, {"etag": f'"{hashlib.md5(request.body).hexdigest() if etag == "md5" else etag}"'})

    parts = StreamedParts(ObjectRequests(send), Large("old", seen, "new"))

    async def send_parts() -> list[Part]:
        ranges = [PartRange(number, number * 2 - 2, number * 2 - 1) for number in range(1, len(etags) + 1)]
        sent = [await parts.send("u", part) for part in ranges]
        await parts.check_source()
        return sent

    return asyncio.run(send_parts())


def check(parts: list[Part], told: str, **headers: str) -> None:
    upload = Upload(Large("old", Response(200), "new"), "u", True, parts)
    body = f"<CompleteMultipartUploadResult><ETag>&quot;{told}&quot;</ETag></CompleteMultipartUploadResult>"
    request = complete_multipart_upload("new", upload_id="u", parts=[], if_none_match=False)
    check_completed(upload, request, Response(200, headers, body.encode()))


def test_the_etag_of_the_whole_is_held_against_the_parts_unless_it_is_no_digest() -> None:
    parts = send_all(BODY, "md5", "md5", "md5")
    check(parts, composite(b"ab", b"cd", b"ef"))
    for wrong in (composite(b"ab", b"cd", b"eX"), composite(b"ab", b"cd")):
        with pytest.raises(ObjectDamaged, match="should have ETag"):
            check(parts, wrong)
    check(parts, "something-else")
    check(parts, composite(b"x"), **{"x-amz-server-side-encryption": "aws:kms"})
    check(send_all(BODY, "md5", "not-an-md5", "md5"), composite(b"quite", b"different"))


def test_a_part_that_arrives_damaged_is_not_completed_nor_what_was_read_damaged() -> None:
    with pytest.raises(ObjectDamaged, match="part 1 has MD5"):
        send_all(BODY, hashlib.md5(b"other").hexdigest())
    right, wrong = (hashlib.md5(body).hexdigest() for body in (BODY, b"abcdeX"))
    send_all(BODY, "md5", "md5", "md5", etag=f'"{right}"')
    with pytest.raises(ObjectDamaged, match="the bytes read"):
        send_all(BODY, "md5", "md5", "md5", etag=f'"{wrong}"')
