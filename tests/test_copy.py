"""The journey of one object: what it asks of the servers, in which order, and how it ends."""

import hashlib
from collections.abc import Callable

import pytest

from journeys import NEW, OLD, shelves_with, way_of
from rowferry.batch import Outcome
from rowferry.errors import AccessDenied, ObjectDamaged, ObjectNotFound, ObjectRejected, ServerFault, Throttled
from rowferry.plan import OnConflict
from rowferry.s3.operations import Request
from rowferry.s3.responses import Answer
from rowferry_worker.objects import compare, transfer
from rowferry_worker.objects.conditional_writes import Belief
from rowferry_worker.objects.copy import Way, copy_object
from rowferry_worker.objects.journey import Copied
from rowferry_worker.objects.transfer import Carrier, ServerCopy, StreamCopy
from shelves import WRITING, Shelves, Stored, header, query, refuse


@pytest.fixture(params=[ServerCopy("old"), StreamCopy()], ids=["server", "stream"])
def carrier(request: pytest.FixtureRequest) -> Carrier:
    return request.param


def outcome_of(shelves: Shelves, way: Way) -> Outcome:
    copied: Copied = shelves.travel(copy_object(way, OLD, NEW))
    return copied.outcome


def belief_of(way: Way) -> Belief:
    return way.condition.belief(way.carrier.operation)


def writes(shelves: Shelves) -> int:
    return sum(request.method == "PUT" for request in shelves.seen)


def test_where_the_condition_is_honoured_one_request_copies() -> None:
    shelves = shelves_with(honours=WRITING)
    assert outcome_of(shelves, way_of(ServerCopy("old"), "honoured")) is Outcome.MIGRATED
    assert shelves.operations == ["CopyObject production"]
    assert header(shelves.seen[0], "If-None-Match") == "*"


def test_where_it_is_ignored_a_look_comes_first() -> None:
    shelves = shelves_with()
    assert outcome_of(shelves, way_of(ServerCopy("old"))) is Outcome.MIGRATED
    assert shelves.operations == ["HeadObject production", "CopyObject production"]
    assert header(shelves.seen[1], "If-None-Match") is None


@pytest.mark.parametrize("honours", [True, False])
def test_the_first_object_copied_tells_whether_the_condition_is_honoured(honours: bool, carrier: Carrier) -> None:
    shelves, way = shelves_with(honours=WRITING if honours else ()), way_of(carrier, "unknown")
    assert outcome_of(shelves, way) is Outcome.MIGRATED
    assert belief_of(way) == ("honoured" if honours else "ignored")
    assert writes(shelves) == 2
    assert shelves.production[NEW].body == b"legacy"


def test_only_one_journey_asks(carrier: Carrier) -> None:
    shelves, way = shelves_with(), way_of(carrier, "asking")
    outcome_of(shelves, way)
    assert writes(shelves) == 1
    assert belief_of(way) == "asking"


@pytest.mark.parametrize(
    ("status", "code", "belief"),
    [(400, "NotImplemented", "ignored"), (501, "NotImplemented", "ignored"), (503, "SlowDown", "unknown")],
)
def test_a_refusal_of_the_question_is_no_failure_of_the_copy(status: int, code: str, belief: str) -> None:
    shelves, way = shelves_with(), way_of(ServerCopy("old"), "unknown")
    shelves.interfere = lambda request: refuse(status, code) if header(request, "If-None-Match") else None
    assert outcome_of(shelves, way) is Outcome.MIGRATED
    assert belief_of(way) == belief


STANDING: dict[tuple[bytes, OnConflict], tuple[Outcome, bytes]] = {
    (b"legacy", "fail"): (Outcome.KEPT, b"legacy"),
    (b"legacy", "overwrite"): (Outcome.KEPT, b"legacy"),
    (b"another", "fail"): (Outcome.CONFLICT, b"another"),
    (b"legacX", "fail"): (Outcome.CONFLICT, b"legacX"),
    (b"another", "keep"): (Outcome.KEPT, b"another"),
    (b"another", "overwrite"): (Outcome.MIGRATED, b"legacy"),
}


@pytest.mark.parametrize("belief", ["unknown", "honoured", "ignored"])
@pytest.mark.parametrize(("standing", "on_conflict"), STANDING)
def test_what_stands_at_the_production_key_is_treated_as_asked(
    belief: Belief, standing: bytes, on_conflict: OnConflict, carrier: Carrier
) -> None:
    outcome, body = STANDING[standing, on_conflict]
    shelves = shelves_with(standing=standing, honours=WRITING if belief == "honoured" else ())
    assert outcome_of(shelves, way_of(carrier, belief, on_conflict)) is outcome
    assert shelves.production[NEW].body == body


@pytest.mark.parametrize("belief", ["unknown", "honoured", "ignored"])
@pytest.mark.parametrize("standing", [None, b"legacy"])
def test_without_a_legacy_object_the_entry_is_missing(belief: Belief, standing: bytes | None, carrier: Carrier) -> None:
    shelves = shelves_with(standing=standing, honours=WRITING if belief == "honoured" else ())
    del shelves.legacy[OLD]
    with pytest.raises(ObjectNotFound):
        outcome_of(shelves, way_of(carrier, belief))
    assert writes(shelves) <= 1


def test_an_object_that_came_and_went_is_tried_again(carrier: Carrier) -> None:
    shelves = shelves_with(honours=WRITING, standing=b"another")

    def vanish(request: Request) -> Answer | None:
        if request.operation == "HeadObject" and request.side == "production":
            shelves.production.clear()
        return None

    shelves.interfere = vanish
    with pytest.raises(ServerFault, match="came and went") as caught:
        outcome_of(shelves, way_of(carrier, "honoured"))
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("status", "code", "error"), [(503, "SlowDown", Throttled), (403, "AccessDenied", AccessDenied)]
)
def test_every_other_error_ends_the_journey_as_it_comes(
    status: int, code: str, error: type[Exception], carrier: Carrier
) -> None:
    shelves = shelves_with()
    shelves.interfere = lambda request: refuse(status, code) if request.method == "PUT" else None
    with pytest.raises(error):
        outcome_of(shelves, way_of(carrier))


def test_a_journey_never_writes_to_the_legacy_side(carrier: Carrier) -> None:
    for standing in (None, b"legacy", b"another"):
        for on_conflict in ("fail", "keep", "overwrite"):
            shelves = shelves_with(standing=standing)
            outcome_of(shelves, way_of(carrier, "unknown", on_conflict))
            assert {request.method for request in shelves.seen if request.side == "legacy"} <= {"GET", "HEAD"}


# Are two objects the same?


@pytest.mark.parametrize("parts", [1, 3])
def test_objects_whose_etags_say_nothing_are_compared_by_their_bytes(
    parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "RANGE_BYTES", 3)
    body = b"abc" * parts + b"d"
    shelves = shelves_with(body)
    shelves.production[NEW] = Stored(body, etag=f"{'e' * 32}-2")
    assert outcome_of(shelves, way_of(ServerCopy("old"))) is Outcome.KEPT
    gets = [request for request in shelves.seen if request.operation == "GetObject"]
    assert len(gets) == 2 * (parts + 1)
    assert {header(request, "If-Match") for request in gets} == {f'"{Stored(body).etag}"', f'"{"e" * 32}-2"'}
    shelves.production[NEW] = Stored(body[:-1] + b"e", etag=f"{'e' * 32}-2")
    assert outcome_of(shelves, way_of(ServerCopy("old"))) is Outcome.CONFLICT


def test_objects_whose_digests_differ_are_not_read() -> None:
    shelves = shelves_with(b"abc", standing=b"abd")
    assert outcome_of(shelves, way_of(ServerCopy("old"))) is Outcome.CONFLICT
    assert "GetObject legacy" not in shelves.operations


def test_an_etag_of_an_encrypted_object_is_no_digest() -> None:
    shelves = shelves_with(b"abc", standing=b"abc")
    shelves.production[NEW].etag = "f" * 32
    shelves.production[NEW].headers["x-amz-server-side-encryption"] = "aws:kms"
    assert outcome_of(shelves, way_of(ServerCopy("old"))) is Outcome.KEPT


# Streaming, and large objects

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
    shelves = shelves_with()
    shelves.legacy[OLD].headers |= {**DESCRIBED, "server": "not this"}
    shelves.legacy[OLD].tags = {"kind": "a b"}
    assert outcome_of(shelves, way_of(StreamCopy())) is Outcome.MIGRATED
    written = shelves.production[NEW].headers
    assert {name: written.get(name) for name in DESCRIBED} == DESCRIBED
    assert written["x-amz-tagging"] == "kind=a%20b"
    assert "server" not in written
    assert written["content-md5"]


def test_bytes_that_changed_on_the_way_are_not_written() -> None:
    shelves = shelves_with()
    shelves.legacy[OLD].etag = hashlib.md5(b"others", usedforsecurity=False).hexdigest()
    with pytest.raises(ObjectDamaged, match="read"):
        outcome_of(shelves, way_of(StreamCopy()))
    assert shelves.production == {}


def test_bytes_that_arrived_differently_are_noticed() -> None:
    shelves = shelves_with()
    answer = Answer(200, {"etag": f'"{"a" * 32}"'})
    shelves.interfere = lambda request: answer if request.operation == "PutObject" else None
    with pytest.raises(ObjectDamaged, match="written"):
        outcome_of(shelves, way_of(StreamCopy()))


def test_a_website_redirect_is_refused_rather_than_lost() -> None:
    shelves = shelves_with()
    shelves.legacy[OLD].headers["x-amz-website-redirect-location"] = "/elsewhere"
    with pytest.raises(ObjectRejected, match="redirect"):
        outcome_of(shelves, way_of(StreamCopy()))


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Shelves:
    """Shelves with an object of ten bytes, of which at most four go into one request."""
    monkeypatch.setattr(transfer, "COPY_PART_BYTES", 4)
    monkeypatch.setattr(transfer, "STREAM_PART_BYTES", 4)
    shelves = shelves_with(b"0123456789", too_large_bytes=4)
    shelves.legacy[OLD].headers |= DESCRIBED
    return shelves


def test_a_large_object_goes_in_parts_that_are_pinned_to_one_version(large: Shelves, carrier: Carrier) -> None:
    assert large.travel(copy_object(way_of(carrier), OLD, NEW)) == Copied(Outcome.MIGRATED, 10)
    assert large.production[NEW].body == b"0123456789"
    pins = {header(request, "If-Match") or header(request, "x-amz-copy-source-if-match") for request in large.seen}
    assert pins == {None, f'"{large.legacy[OLD].etag}"'}
    (begun,) = [request for request in large.seen if request.operation == "CreateMultipartUpload"]
    assert DESCRIBED.items() <= dict(begun.headers).items()


def test_parts_are_numbered_from_one_without_a_gap(large: Shelves, carrier: Carrier) -> None:
    large.travel(copy_object(way_of(carrier), OLD, NEW))
    numbers = [query(request, "partNumber") for request in large.seen if "partNumber" in dict(request.query)]
    assert numbers == ["1", "2", "3"]


@pytest.mark.parametrize("part", ["1", "3", "the end"])
def test_an_upload_that_fails_is_aborted(part: str, large: Shelves, carrier: Carrier) -> None:
    def fail(request: Request) -> Answer | None:
        at_end = request.operation == "CompleteMultipartUpload" and part == "the end"
        return refuse(500, "InternalError") if at_end or dict(request.query).get("partNumber") == part else None

    large.interfere = fail
    with pytest.raises(ServerFault, match="InternalError"):
        large.travel(copy_object(way_of(carrier), OLD, NEW))
    assert large.uploads == {}
    assert large.production == {}


@pytest.mark.parametrize("honours", [True, False])
def test_a_large_object_is_protected_by_the_condition_as_well(honours: bool, large: Shelves, carrier: Carrier) -> None:
    large.honours, large.production[NEW] = WRITING if honours else (), Stored(b"another!!!")
    assert outcome_of(large, way_of(carrier, "honoured" if honours else "ignored")) is Outcome.CONFLICT
    assert large.production[NEW].body == b"another!!!"
    assert large.uploads == {}


SIZES: list[tuple[int, int, Callable[[int], bool]]] = [
    (10_000 * 8, 8, lambda part: part == 8),
    (10_000 * 8 + 1, 8, lambda part: part == 9),
    (5 * 1024**4, 8 * 1024**2, lambda part: part * 10_000 >= 5 * 1024**4),
]


@pytest.mark.parametrize(("size", "wanted", "fits"), SIZES)
def test_no_object_has_more_than_ten_thousand_parts(size: int, wanted: int, fits: Callable[[int], bool]) -> None:
    from rowferry_worker.objects.multipart import part_size

    part = part_size(size, wanted)
    assert fits(part)
    assert -(-size // part) <= 10_000
