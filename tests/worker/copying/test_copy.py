"""The copy of one object: what it asks of the servers, in which order, and how it ends."""

from collections.abc import Callable

import pytest

from rowferry.batch import Outcome
from rowferry.errors import ObjectDamaged, ObjectNotFound, ObjectRejected, ServerFault
from rowferry.plan import OnConflict
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_worker.copying import server_copy, stream_copy
from rowferry_worker.copying.copy import CopyOptions, CopyResult, copy_object
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.objects import compare
from support.s3.copies import NEW, OLD, Support, end_of, fake_with, options_of, support_of
from support.s3.fake_buckets import WRITING, FakeBuckets, changed, refuse, stored


@pytest.fixture(params=[ServerCopy("legacy"), StreamCopy()], ids=["server", "stream"])
def method(request: pytest.FixtureRequest) -> CopyMethod:
    return request.param


def outcome_of(fake: FakeBuckets, options: CopyOptions) -> Outcome:
    copied: CopyResult = fake.run(copy_object(fake.s3, options, OLD, NEW))
    return copied.outcome


def writes(fake: FakeBuckets) -> int:
    return sum(request.method == "PUT" for request in fake.seen)


def test_where_the_condition_is_honoured_one_request_copies() -> None:
    fake = fake_with(honours=WRITING)
    assert outcome_of(fake, options_of(ServerCopy("legacy"), "supported")) is Outcome.MIGRATED
    assert fake.operations == ["CopyObject production"]
    assert fake.seen[0].header(b"if-none-match") == "*"


def test_where_it_is_ignored_a_look_comes_right_before_the_write(method: CopyMethod) -> None:
    fake = fake_with()
    assert outcome_of(fake, options_of(method)) is Outcome.MIGRATED
    assert fake.operations[-2:] == ["HeadObject production", f"{method.operation} production"]
    assert fake.seen[-1].header(b"if-none-match") is None


@pytest.mark.parametrize("honours", [True, False])
def test_the_first_object_copied_tells_whether_the_condition_is_honoured(honours: bool, method: CopyMethod) -> None:
    fake, options = fake_with(honours=WRITING if honours else ()), options_of(method, "unknown")
    assert outcome_of(fake, options) is Outcome.MIGRATED
    assert support_of(options) == ("supported" if honours else "ignored")
    assert writes(fake) == 2
    assert fake.production[NEW].body == b"legacy"


def test_only_one_copy_asks(method: CopyMethod) -> None:
    fake, options = fake_with(), options_of(method, "probing")
    outcome_of(fake, options)
    assert writes(fake) == 1
    assert support_of(options) == "probing"


@pytest.mark.parametrize(
    ("status", "code", "support"),
    [(400, "NotImplemented", "ignored"), (501, "NotImplemented", "ignored"), (503, "SlowDown", "unknown")],
)
def test_a_refusal_of_the_question_is_no_failure_of_the_copy(status: int, code: str, support: str) -> None:
    fake, options = fake_with(), options_of(ServerCopy("legacy"), "unknown")
    fake.interfere = lambda request: refuse(status, code) if writes(fake) > 1 else None
    assert outcome_of(fake, options) is Outcome.MIGRATED
    assert support_of(options) == support


@pytest.mark.parametrize(("status", "code"), [(400, "InvalidArgument"), (501, "NotImplemented"), (501, "")])
def test_a_server_that_refuses_the_condition_gets_its_writes_without(
    status: int, code: str, method: CopyMethod
) -> None:
    """Swift answers 501 to the header."""
    fake, options = fake_with(), options_of(method, "unknown")
    fake.interfere = lambda request: refuse(status, code) if request.header(b"if-none-match") else None
    assert outcome_of(fake, options) is Outcome.MIGRATED
    assert support_of(options) == "ignored"
    assert writes(fake) == 2


def test_a_refusal_that_is_not_the_conditions_is_told(method: CopyMethod) -> None:
    fake, options = fake_with(), options_of(method, "unknown")
    fake.interfere = lambda request: refuse(400, "InvalidArgument") if request.operation in WRITING else None
    with pytest.raises(ObjectRejected, match="InvalidArgument"):
        outcome_of(fake, options)
    assert support_of(options) == "unknown"


def test_every_write_has_the_condition_until_a_server_is_known_to_ignore_it(method: CopyMethod) -> None:
    """Another writer may come between the look and the write of the very first object."""
    fake, options = fake_with(honours=WRITING), options_of(method, "unknown")

    def write_first(request: Request) -> None:
        if request.operation in WRITING:
            fake.production[NEW] = stored(b"another")

    fake.interfere = write_first
    assert outcome_of(fake, options) is Outcome.CONFLICT
    assert fake.production[NEW].body == b"another"


EXISTING: dict[tuple[bytes, OnConflict], tuple[Outcome, bytes]] = {
    (b"legacy", "fail"): (Outcome.KEPT, b"legacy"),
    (b"legacy", "overwrite"): (Outcome.KEPT, b"legacy"),
    (b"another", "fail"): (Outcome.CONFLICT, b"another"),
    (b"legacX", "fail"): (Outcome.CONFLICT, b"legacX"),
    (b"another", "keep"): (Outcome.KEPT, b"another"),
    (b"another", "overwrite"): (Outcome.MIGRATED, b"legacy"),
}


@pytest.mark.parametrize("support", ["unknown", "supported", "ignored"])
@pytest.mark.parametrize(("existing", "on_conflict"), EXISTING)
def test_what_stands_at_the_production_key_is_treated_as_asked(
    support: Support, existing: bytes, on_conflict: OnConflict, method: CopyMethod
) -> None:
    outcome, body = EXISTING[existing, on_conflict]
    fake = fake_with(existing=existing, honours=WRITING if support == "supported" else ())
    assert outcome_of(fake, options_of(method, support, on_conflict)) is outcome
    assert fake.production[NEW].body == body


@pytest.mark.parametrize("support", ["unknown", "supported", "ignored"])
@pytest.mark.parametrize("existing", [None, b"legacy"])
def test_without_a_legacy_object_the_entry_is_missing(
    support: Support, existing: bytes | None, method: CopyMethod
) -> None:
    fake = fake_with(existing=existing, honours=WRITING if support == "supported" else ())
    del fake.legacy[OLD]
    with pytest.raises(ObjectNotFound):
        outcome_of(fake, options_of(method, support))
    assert writes(fake) <= 1


def test_an_object_that_came_and_went_is_tried_again(method: CopyMethod) -> None:
    fake = fake_with(honours=WRITING, existing=b"another")

    def vanish(request: Request) -> Response | None:
        if request.operation == "HeadObject" and request.bucket == "production":
            fake.production.clear()
        return None

    fake.interfere = vanish
    with pytest.raises(ServerFault, match="came and went") as caught:
        outcome_of(fake, options_of(method, "supported"))
    assert caught.value.retryable


@pytest.mark.parametrize("parts", [1, 3])
def test_objects_whose_etags_say_nothing_are_compared_by_their_bytes(
    parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "RANGE_BYTES", 3)
    body = b"abc" * parts + b"d"
    fake = fake_with(body)
    fake.production[NEW] = stored(body, etag=f"{'e' * 32}-2")
    assert outcome_of(fake, options_of(ServerCopy("legacy"))) is Outcome.KEPT
    gets = [request for request in fake.seen if request.operation == "GetObject"]
    assert len(gets) == 2 * (parts + 1)
    assert {request.header(b"if-match") for request in gets} == {f'"{stored(body).etag}"', f'"{"e" * 32}-2"'}
    fake.production[NEW] = stored(body[:-1] + b"e", etag=f"{'e' * 32}-2")
    assert outcome_of(fake, options_of(ServerCopy("legacy"))) is Outcome.CONFLICT


def test_objects_whose_digests_differ_are_not_read_unless_they_are_encrypted() -> None:
    fake = fake_with(b"abc", existing=b"abd")
    assert outcome_of(fake, options_of(ServerCopy("legacy"))) is Outcome.CONFLICT
    assert "GetObject legacy" not in fake.operations
    encrypted = changed(stored(b"abc", etag="f" * 32), headers={"x-amz-server-side-encryption": "aws:kms"})
    fake.production[NEW] = encrypted
    assert outcome_of(fake, options_of(ServerCopy("legacy"))) is Outcome.KEPT


@pytest.mark.parametrize("operation", ["GetObjectTagging", "PutObjectTagging"])
def test_a_production_object_that_is_not_found_is_no_missing_legacy_object(operation: str) -> None:
    """It was deleted meanwhile, or the server does not find at once what it has written."""
    fake = fake_with(keeps_tags=frozenset())
    fake.legacy[OLD] = stored(b"legacy", tags={"kind": "a"})
    not_found = refuse(404, "NoSuchKey")
    fake.interfere = lambda request: not_found if f"{request.operation} {request.bucket}" == where else None
    where = f"{operation} production"
    options = options_of(StreamCopy())
    options.properties.tagging._kept.clear()
    with pytest.raises(ServerFault, match="ObjectGone: the production object was there") as gone:
        outcome_of(fake, options)
    assert gone.value.where == where


DESCRIBED = {
    "content-type": "image/png",
    "cache-control": "no-store",
    "content-disposition": "inline",
    "content-encoding": "gzip",
    "content-language": "de",
    "expires": "Thu, 01 Jan 2032 00:00:00 GMT",
    "x-amz-meta-author": "me",
}


def test_a_streamed_object_takes_along_what_describes_it() -> None:
    fake = fake_with()
    fake.legacy[OLD] = stored(b"legacy", {**DESCRIBED, "server": "not this"}, tags={"kind": "a b"})
    assert outcome_of(fake, options_of(StreamCopy())) is Outcome.MIGRATED
    written, put = fake.production[NEW], fake.seen[-1]
    assert {name: written.headers.get(name) for name in DESCRIBED} == DESCRIBED
    assert written.tags == {"kind": "a b"}
    assert put.header(b"x-amz-tagging") == "kind=a%20b"
    assert put.header(b"server") is None
    assert put.header(b"content-md5")


def test_a_website_redirect_is_refused_rather_than_lost() -> None:
    fake = fake_with()
    fake.legacy[OLD] = changed(fake.legacy[OLD], headers={"x-amz-website-redirect-location": "/elsewhere"})
    with pytest.raises(ObjectRejected, match="redirect"):
        outcome_of(fake, options_of(StreamCopy()))


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> FakeBuckets:
    """FakeBuckets with an object of ten bytes, of which at most four go into one request."""
    monkeypatch.setattr(server_copy, "COPY_PART_BYTES", 4)
    monkeypatch.setattr(stream_copy, "STREAM_PART_BYTES", 4)
    monkeypatch.setattr(stream_copy, "PUT_LIMIT_BYTES", 4)
    fake = fake_with(b"0123456789", largest_copy_bytes=4)
    fake.legacy[OLD] = changed(fake.legacy[OLD], headers=DESCRIBED)
    return fake


def test_a_large_object_goes_in_parts_that_are_pinned_to_one_version(large: FakeBuckets, method: CopyMethod) -> None:
    assert end_of(large.run(copy_object(large.s3, options_of(method), OLD, NEW))) == (Outcome.MIGRATED, 10)
    assert large.production[NEW].body == b"0123456789"
    pins = {request.header(b"if-match") or request.header(b"x-amz-copy-source-if-match") for request in large.seen}
    assert pins == {None, f'"{large.legacy[OLD].etag}"'}
    (started,) = [request for request in large.seen if request.operation == "CreateMultipartUpload"]
    assert DESCRIBED.items() <= started.describe().items()


def test_what_was_completed_is_looked_at(large: FakeBuckets, method: CopyMethod) -> None:
    """A completion is answered early, with an ETag made of what was asked for: a part may be lost all the same."""

    def drop_the_last_part(request: Request) -> Response | None:
        if request.operation != "CompleteMultipartUpload":
            return None
        done = large.carry_out(request)
        large.production[NEW] = changed(large.production[NEW], body=b"01234567", size=8)
        return Response(200, body=done.partition(b"\r\n\r\n")[2])

    large.interfere, options = drop_the_last_part, options_of(method)
    with pytest.raises(ObjectDamaged, match="SizeMismatch: 8 bytes stand there, 10 were copied"):
        outcome_of(large, options)
    large.interfere = lambda _: None
    assert outcome_of(large, options) is Outcome.MIGRATED  # and no different object
    assert large.production[NEW].body == b"0123456789"


def parts_of(large: FakeBuckets) -> list[int]:
    """Stream the object and return the sizes of its parts in bytes, in order."""
    large.run(copy_object(large.s3, options_of(StreamCopy()), OLD, NEW))
    return [len(request.body) for request in large.seen if request.operation == "UploadPart"]


@pytest.mark.parametrize(
    ("etag", "parts"), [("", [3, 3, 3, 1]), (f"{'e' * 32}-2", [4, 4, 2])], ids=["its MD5", "no digest"]
)
def test_of_a_streamed_object_whose_md5_is_known_the_parts_are_small(
    large: FakeBuckets, monkeypatch: pytest.MonkeyPatch, etag: str, parts: list[int]
) -> None:
    """Those that come early are held for the digest of the whole; where none is to be had, fewer requests are best."""
    monkeypatch.setattr(stream_copy, "SMALLEST_PART_BYTES", 3)
    large.legacy[OLD] = changed(large.legacy[OLD], etag=etag or large.legacy[OLD].etag)
    assert parts_of(large) == parts
    assert large.production[NEW].body == b"0123456789"


@pytest.mark.parametrize("part", ["1", "3", "the end"])
def test_an_upload_that_fails_is_aborted(part: str, large: FakeBuckets, method: CopyMethod) -> None:
    def fail(request: Request) -> Response | None:
        at_end = request.operation == "CompleteMultipartUpload" and part == "the end"
        return refuse(500, "InternalError") if at_end or request.query.get("partNumber") == part else None

    large.interfere = fail
    with pytest.raises(ServerFault, match="InternalError"):
        large.run(copy_object(large.s3, options_of(method), OLD, NEW))
    assert large.uploads == {}
    assert large.production == {}


SIZES: list[tuple[int, int, Callable[[int], bool]]] = [
    (10_000 * 8, 8, lambda part: part == 8),
    (10_000 * 8 + 1, 8, lambda part: part == 9),
    (5 * 1024**4, 8 * 1024**2, lambda part: part * 10_000 >= 5 * 1024**4),
]


@pytest.mark.parametrize(("size", "wanted", "fits"), SIZES)
def test_no_object_has_more_than_ten_thousand_parts(size: int, wanted: int, fits: Callable[[int], bool]) -> None:
    from rowferry_worker.multipart.part_size import part_size

    part = part_size(size, wanted)
    assert fits(part)
    assert -(-size // part) <= 10_000
