"""No different object is overwritten, whatever a server honours on whichever operation."""

from itertools import count
from typing import Any

import pytest

from rowferry.batch import Outcome
from rowferry.errors import Cancelled, ObjectError, ServerFault
from rowferry.s3 import operations
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_worker.copying.copy import copy_object
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.objects.requests import ObjectRequests
from support.s3.copies import NEW, OLD, Support, copy_once, end_of, fake_with, options_of, support_of
from support.s3.fake_buckets import LOST, RGW, WRITING, FakeBuckets, refuse, stored

LARGE = b"0123456789"
COMPLETE = "CompleteMultipartUpload"


@pytest.fixture(params=[ServerCopy("legacy", 4), StreamCopy(threshold_bytes=4)], ids=["server", "stream"])
def by_parts(request: pytest.FixtureRequest) -> CopyMethod:
    return request.param


def large_fake(existing: bytes | None = None, **more: Any) -> FakeBuckets:
    return fake_with(LARGE, existing, **more)


def write_at(fake: FakeBuckets, operation: str) -> None:
    """Have the application write its own object just before an operation reaches the server."""

    def write(request: Request) -> None:
        if request.operation == operation:
            fake.production[NEW] = stored(b"another!!!")

    fake.interfere = write


@pytest.mark.parametrize("support", ["unknown", "probing", "supported", "ignored"])
@pytest.mark.parametrize("honours", [RGW, WRITING, ()], ids=["rgw", "all", "none"])
@pytest.mark.parametrize("appears", ["CreateMultipartUpload", "UploadPart"])
def test_what_appears_during_an_upload_is_never_overwritten(
    appears: str, honours: tuple[str, ...], support: Support, by_parts: CopyMethod
) -> None:
    """Ceph RGW and gofakes3 honour the condition of PutObject and ignore that of CompleteMultipartUpload."""
    fake = large_fake(honours=honours)
    operation = "UploadPartCopy" if appears == "UploadPart" and isinstance(by_parts, ServerCopy) else appears
    write_at(fake, operation)
    assert copy_once(fake, options_of(by_parts, support)).outcome is Outcome.CONFLICT
    assert fake.production[NEW].body == b"another!!!"
    assert fake.uploads == {}


@pytest.mark.parametrize("support", ["unknown", "supported", "ignored"])
def test_what_stands_is_found_before_a_part_is_sent(support: Support, by_parts: CopyMethod) -> None:
    fake = large_fake(b"another!!!")
    assert copy_once(fake, options_of(by_parts, support)).outcome is Outcome.CONFLICT
    assert "CreateMultipartUpload production" not in fake.operations


def test_the_last_look_comes_right_before_the_completion_and_the_condition_goes_with_it(by_parts: CopyMethod) -> None:
    fake = large_fake()
    copy_once(fake, options_of(by_parts, "supported"))
    at = fake.operations.index(f"{COMPLETE} production")
    assert fake.operations[at - 1] == "HeadObject production"
    assert fake.seen[at].header(b"if-none-match") == "*"


def test_what_is_learned_of_one_operation_is_not_believed_of_another() -> None:
    fake, options = fake_with(honours=RGW), options_of(StreamCopy(), "unknown")
    copy_once(fake, options)
    assert [support_of(options, operation) for operation in WRITING] == ["supported", "unknown", "unknown"]


@pytest.mark.parametrize(("status", "code"), [(501, "NotImplemented"), (400, "InvalidArgument")])
def test_a_server_that_refuses_the_condition_of_a_completion_is_asked_without(
    status: int, code: str, by_parts: CopyMethod
) -> None:
    fake, options = large_fake(), options_of(by_parts)

    def refuse_condition(request: Request) -> Response | None:
        is_condition = request.operation == COMPLETE and request.header(b"if-none-match")
        return refuse(status, code) if is_condition else None

    fake.interfere = refuse_condition
    assert end_of(copy_once(fake, options)) == (Outcome.MIGRATED, 10)
    del fake.production[NEW]
    fake.seen.clear()
    assert end_of(copy_once(fake, options)) == (Outcome.MIGRATED, 10)
    assert fake.operations.count(f"{COMPLETE} production") == 1, "it is not asked again"


@pytest.mark.parametrize("method", [ServerCopy("legacy"), StreamCopy()], ids=["server", "stream"])
def test_what_has_replaced_our_object_is_not_overwritten_to_learn_the_condition(method: CopyMethod) -> None:
    fake, options = fake_with(), options_of(method, "unknown")

    def write_behind(request: Request) -> None:
        if fake.operations.count(f"{method.operation} production") == 1 and NEW in fake.production:
            fake.production[NEW] = stored(b"the application's")

    fake.interfere = write_behind
    copy_once(fake, options)
    assert fake.production[NEW].body == b"the application's"
    assert support_of(options) == "unknown"


def test_a_409_does_not_prove_that_the_condition_is_honoured() -> None:
    fake, options = fake_with(), options_of(StreamCopy(), "unknown")
    fake.interfere = lambda _: (
        refuse(409, "OperationAborted") if fake.operations.count("PutObject production") == 2 else None
    )
    copy_once(fake, options)
    assert support_of(options) == "unknown"


def test_a_rerun_moves_no_bytes_once_it_knows_itself_for_one() -> None:
    fake, options = fake_with(existing=b"legacy", honours=WRITING), options_of(StreamCopy(), "supported")
    assert copy_once(fake, options).outcome is Outcome.KEPT
    fake.seen.clear()
    assert copy_once(fake, options).outcome is Outcome.KEPT
    assert fake.operations == ["HeadObject production", "HeadObject legacy"]


def test_where_nothing_stands_any_more_the_looks_end() -> None:
    fake, options = fake_with(honours=WRITING), options_of(StreamCopy(), "supported")
    options.support.expects_existing = True
    for looks in (1, 0):
        fake.production.clear()
        fake.seen.clear()
        assert copy_once(fake, options).outcome is Outcome.MIGRATED
        assert fake.operations.count("HeadObject production") == looks


def test_keeping_whatever_stands_reads_nothing() -> None:
    fake = fake_with(existing=b"another", honours=WRITING)
    assert copy_once(fake, options_of(StreamCopy(), "supported", "keep")).outcome is Outcome.KEPT
    assert fake.operations == ["HeadObject production"]


def cancelled_at(number: int, fake: FakeBuckets) -> ObjectRequests:
    """Return what sends to a fake all requests but one, counted from 0: the worker is told to stop before that."""
    numbers = count()

    async def send(request: operations.Request) -> Response:
        if next(numbers) == number:
            raise Cancelled("Cancelled", "told to stop")
        return await fake.send(request)

    return ObjectRequests(send)


@pytest.mark.parametrize(
    "method",
    [ServerCopy("legacy", 4), StreamCopy(threshold_bytes=4), ServerCopy("legacy"), StreamCopy()],
    ids=["server by parts", "stream by parts", "server", "stream"],
)
def test_a_cancelled_copy_completes_no_upload_and_writes_nothing_more(method: CopyMethod) -> None:
    """Whichever request is under way when the worker is told to stop: nothing follows but the abort."""
    complete = fake_with(LARGE)
    copy_once(complete, options_of(method, "unknown"))
    for number in range(len(complete.seen)):
        fake = fake_with(LARGE)
        with pytest.raises(Cancelled):
            fake.run(copy_object(cancelled_at(number, fake), options_of(method, "unknown"), OLD, NEW))
        assert {request.operation for request in fake.seen[number:]} <= {"AbortMultipartUpload"}


def answer_completion(fake: FakeBuckets, answer: Response, *, done: bool) -> None:
    """Have the server complete, or not, and say something else about it."""

    def interfere(request: Request) -> Response | None:
        if request.operation != COMPLETE:
            return None
        if done:
            fake.carry_out(request)
        return answer

    fake.interfere = interfere


EMPTY = Response(200, {}, f"<{COMPLETE}Result><ETag></ETag></{COMPLETE}Result>".encode())
DOUBTS = {
    "empty ETag": EMPTY,
    "cut off": Response(200, {}, b"<?xml"),
    "login page": Response(200, {}, b"<html>please log in</html>"),
    "lost": LOST,
    "500": refuse(500, "InternalError"),
    "gateway": refuse(504, ""),
    "no such upload": refuse(404, "NoSuchUpload"),
    "412": refuse(412, "PreconditionFailed"),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_completion_that_happened_is_recognised_whatever_the_server_says(doubt: str, by_parts: CopyMethod) -> None:
    fake = large_fake()
    answer_completion(fake, DOUBTS[doubt], done=True)
    assert end_of(copy_once(fake, options_of(by_parts))) == (Outcome.MIGRATED, 10)
    assert "AbortMultipartUpload production" not in fake.operations
    assert "GetObject production" not in fake.operations, "the ETag of the parts says it all"


@pytest.mark.parametrize("doubt", ["empty ETag", "lost", "gateway", "cut off"])
def test_an_upload_that_may_still_be_completed_is_not_aborted(doubt: str, by_parts: CopyMethod) -> None:
    fake = large_fake()
    answer_completion(fake, DOUBTS[doubt], done=False)
    with pytest.raises(ObjectError) as caught:
        copy_once(fake, options_of(by_parts))
    assert caught.value.retryable
    assert fake.production == {}
    assert len(fake.uploads) == 1


@pytest.mark.parametrize("answer", [LOST, refuse(500, "InternalError")])
def test_a_completion_that_has_not_happened_is_asked_for_again(answer: Response, by_parts: CopyMethod) -> None:
    fake = large_fake()
    fake.interfere = lambda request: (
        answer if request.operation == COMPLETE and fake.operations.count(f"{COMPLETE} production") == 1 else None
    )
    assert end_of(copy_once(fake, options_of(by_parts))) == (Outcome.MIGRATED, 10)


@pytest.mark.parametrize("parts_have_digests", [True, False])
def test_another_object_is_not_taken_for_the_one_that_was_completed(parts_have_digests: bool) -> None:
    fake = large_fake()

    def interfere(request: Request) -> Response | None:
        if request.operation == "UploadPart" and not parts_have_digests:
            return Response(200, {"etag": '"no-digest"'})
        if request.operation == COMPLETE:
            fake.production[NEW] = stored(b"another!!!")
            return LOST
        return None

    fake.interfere = interfere
    assert copy_once(fake, options_of(StreamCopy(threshold_bytes=4))).outcome is Outcome.CONFLICT
    assert fake.production[NEW].body == b"another!!!"


@pytest.mark.parametrize("heeds_pins", [True, False])
def test_a_legacy_object_that_changes_during_a_copy_by_parts_is_not_patched_together(
    heeds_pins: bool, by_parts: CopyMethod
) -> None:
    """moto and Ceph RGW ignore x-amz-copy-source-if-match."""
    fake = large_fake()
    fake.deviate(read_if_match=heeds_pins, source_if_match=heeds_pins)

    def rewrite(request: Request) -> None:
        if request.query.get("partNumber") == "2" or request.header(b"range") == "bytes=4-7":
            fake.legacy[OLD] = stored(LARGE[::-1])

    fake.interfere = rewrite
    with pytest.raises(ServerFault, match="ObjectChanged"):
        copy_once(fake, options_of(by_parts))
    assert fake.production == {}
    assert fake.uploads == {}
    fake.interfere = lambda _: None
    assert end_of(copy_once(fake, options_of(by_parts))) == (Outcome.MIGRATED, 10)
    assert fake.production[NEW].body == LARGE[::-1]


@pytest.mark.parametrize(
    ("body", "code", "parts"),
    [(LARGE, "InvalidRequest", False), (LARGE, "EntityTooLarge", True), (b"", "EntityTooLarge", False)],
)
def test_only_an_object_that_is_too_large_goes_by_parts(body: bytes, code: str, parts: bool) -> None:
    fake = fake_with(body)
    fake.interfere = lambda request: refuse(400, code) if request.operation == "CopyObject" else None
    options = options_of(ServerCopy("legacy"))
    if parts:
        assert copy_once(fake, options).outcome is Outcome.MIGRATED
        return
    with pytest.raises(ObjectError, match=code):
        copy_once(fake, options)
    assert "CreateMultipartUpload production" not in fake.operations
