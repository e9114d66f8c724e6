"""No different object is overwritten, whatever a server honours on whichever operation."""

import pytest

from journeys import NEW, OLD, move, shelves_with, way_of
from rowferry.batch import Outcome
from rowferry.errors import Cancelled, ObjectError, ServerFault
from rowferry.s3.operations import Request
from rowferry.s3.responses import Answer
from rowferry_worker.objects.conditional_writes import Belief
from rowferry_worker.objects.copy import copy_object, overwrite
from rowferry_worker.objects.journey import Copied
from rowferry_worker.objects.transfer import Carrier, ServerCopy, StreamCopy
from shelves import RGW, WRITING, Shelves, Stored, header, refuse

LARGE = b"0123456789"
COMPLETE = "CompleteMultipartUpload"


@pytest.fixture(params=[ServerCopy("old", 4), StreamCopy(threshold_bytes=4)], ids=["server", "stream"])
def by_parts(request: pytest.FixtureRequest) -> Carrier:
    return request.param


def large_shelves(standing: bytes | None = None, **more: object) -> Shelves:
    return shelves_with(LARGE, standing, too_large_bytes=4, **more)


def write_at(shelves: Shelves, operation: str, body: bytes = b"another!!!") -> None:
    """Have the application write its own object just before an operation reaches the server."""

    def write(request: Request) -> None:
        if request.operation == operation:
            shelves.production[NEW] = Stored(body)

    shelves.interfere = write


@pytest.mark.parametrize("belief", ["unknown", "asking", "honoured", "ignored"])
@pytest.mark.parametrize("honours", [RGW, WRITING, ()], ids=["rgw", "all", "none"])
@pytest.mark.parametrize("appears", ["CreateMultipartUpload", "UploadPart"])
def test_what_appears_during_an_upload_is_never_overwritten(
    appears: str, honours: tuple[str, ...], belief: Belief, by_parts: Carrier
) -> None:
    """Ceph RGW and gofakes3 honour the condition of PutObject and ignore that of CompleteMultipartUpload."""
    shelves = large_shelves(honours=honours)
    operation = "UploadPartCopy" if appears == "UploadPart" and isinstance(by_parts, ServerCopy) else appears
    write_at(shelves, operation)
    assert move(shelves, way_of(by_parts, belief)).outcome is Outcome.CONFLICT
    assert shelves.production[NEW].body == b"another!!!"
    assert shelves.uploads == {}


@pytest.mark.parametrize("belief", ["unknown", "honoured", "ignored"])
def test_what_stands_is_found_before_a_part_is_sent(belief: Belief, by_parts: Carrier) -> None:
    shelves = large_shelves(b"another!!!")
    assert move(shelves, way_of(by_parts, belief)).outcome is Outcome.CONFLICT
    assert "CreateMultipartUpload production" not in shelves.operations


def test_the_last_look_comes_right_before_the_completion_and_the_condition_goes_with_it(by_parts: Carrier) -> None:
    shelves = large_shelves()
    move(shelves, way_of(by_parts, "honoured"))
    at = shelves.operations.index(f"{COMPLETE} production")
    assert shelves.operations[at - 1] == "HeadObject production"
    assert header(shelves.seen[at], "If-None-Match") == "*"


@pytest.mark.parametrize("carrier", [ServerCopy("old"), StreamCopy()], ids=["server", "stream"])
def test_where_a_look_is_all_there_is_it_comes_last(carrier: Carrier) -> None:
    shelves = shelves_with()
    move(shelves, way_of(carrier, "ignored"))
    assert shelves.operations[-2:] == ["HeadObject production", f"{carrier.operation} production"]


def test_what_is_learned_of_one_operation_is_not_believed_of_another() -> None:
    shelves, way = shelves_with(honours=RGW), way_of(StreamCopy(), "unknown")
    move(shelves, way)
    beliefs = [way.condition.belief(operation) for operation in WRITING]
    assert beliefs == ["honoured", "unknown", "unknown"]


@pytest.mark.parametrize(("status", "code"), [(501, "NotImplemented"), (400, "InvalidArgument")])
def test_a_server_that_refuses_the_condition_of_a_completion_is_asked_without(
    status: int, code: str, by_parts: Carrier
) -> None:
    shelves, way = large_shelves(), way_of(by_parts)

    def refuse_condition(request: Request) -> Answer | None:
        is_condition = request.operation == COMPLETE and header(request, "If-None-Match")
        return refuse(status, code) if is_condition else None

    shelves.interfere = refuse_condition
    assert move(shelves, way) == Copied(Outcome.MIGRATED, 10)
    del shelves.production[NEW]
    shelves.seen.clear()
    assert move(shelves, way) == Copied(Outcome.MIGRATED, 10)
    assert shelves.operations.count(f"{COMPLETE} production") == 1, "it is not asked again"


@pytest.mark.parametrize("carrier", [ServerCopy("old"), StreamCopy()], ids=["server", "stream"])
def test_what_has_replaced_our_object_is_not_overwritten_to_learn_the_condition(carrier: Carrier) -> None:
    shelves, way = shelves_with(), way_of(carrier, "unknown")

    def write_behind(request: Request) -> None:
        if shelves.operations.count(f"{carrier.operation} production") == 1 and NEW in shelves.production:
            shelves.production[NEW] = Stored(b"the application's")

    shelves.interfere = write_behind
    move(shelves, way)
    assert shelves.production[NEW].body == b"the application's"
    assert way.condition.belief(carrier.operation) == "unknown"


def test_a_409_does_not_prove_that_the_condition_is_honoured() -> None:
    shelves, way = shelves_with(), way_of(StreamCopy(), "unknown")
    shelves.interfere = lambda request: refuse(409, "OperationAborted") if header(request, "If-None-Match") else None
    move(shelves, way)
    assert way.condition.belief("PutObject") == "unknown"


def test_overwriting_is_done_where_it_was_asked_for(by_parts: Carrier) -> None:
    shelves = large_shelves(b"another!!!", honours=WRITING)
    assert shelves.travel(overwrite(way_of(by_parts), OLD, NEW)) == Copied(Outcome.MIGRATED, 10)
    assert shelves.production[NEW].body == LARGE


# Reruns over what stands already


def test_a_rerun_moves_no_bytes_once_it_knows_itself_for_one() -> None:
    shelves, way = shelves_with(standing=b"legacy", honours=WRITING), way_of(StreamCopy(), "honoured")
    assert move(shelves, way).outcome is Outcome.KEPT
    shelves.seen.clear()
    assert move(shelves, way).outcome is Outcome.KEPT
    assert shelves.operations == ["HeadObject production", "HeadObject legacy"]


def test_where_nothing_stands_any_more_the_looks_end() -> None:
    shelves, way = shelves_with(honours=WRITING), way_of(StreamCopy(), "honoured")
    way.condition.expects_standing = True
    for looks in (1, 0):
        shelves.production.clear()
        shelves.seen.clear()
        assert move(shelves, way).outcome is Outcome.MIGRATED
        assert shelves.operations.count("HeadObject production") == looks


def test_keeping_whatever_stands_reads_nothing() -> None:
    shelves = shelves_with(standing=b"another", honours=WRITING)
    assert move(shelves, way_of(StreamCopy(), "honoured", "keep")).outcome is Outcome.KEPT
    assert shelves.operations == ["HeadObject production"]


# A journey that was cancelled


@pytest.mark.parametrize(
    "carrier",
    [ServerCopy("old", 4), StreamCopy(threshold_bytes=4), ServerCopy("old"), StreamCopy()],
    ids=["server by parts", "stream by parts", "server", "stream"],
)
def test_a_cancelled_journey_completes_no_upload_and_writes_nothing_more(carrier: Carrier) -> None:
    """Whichever request is under way when the worker is told to stop: nothing follows but the abort."""
    complete = shelves_with(LARGE, too_large_bytes=getattr(carrier, "_threshold_bytes", None) or 100)
    move(complete, way_of(carrier, "unknown"))
    for number in range(len(complete.seen)):
        shelves = shelves_with(LARGE, too_large_bytes=getattr(carrier, "_threshold_bytes", None) or 100)

        def cancel(request: Request, shelves: Shelves = shelves, number: int = number) -> Answer | None:
            del request
            return Answer(0, error=Cancelled("Cancelled", "told to stop")) if len(shelves.seen) == number + 1 else None

        shelves.interfere = cancel
        with pytest.raises(Cancelled):
            shelves.travel(copy_object(way_of(carrier, "unknown"), OLD, NEW))
        assert {request.operation for request in shelves.seen[number + 1 :]} <= {"AbortMultipartUpload"}


# Completions whose answer leaves doubt


def answer_completion(shelves: Shelves, answer: Answer, *, done: bool) -> None:
    """Have the server complete, or not, and say something else about it."""

    def interfere(request: Request) -> Answer | None:
        if request.operation != COMPLETE:
            return None
        if done:
            shelves._CompleteMultipartUpload(request)
        return answer

    shelves.interfere = interfere


EMPTY = Answer(200, {}, f"<{COMPLETE}Result><ETag></ETag></{COMPLETE}Result>".encode())
LOST = refuse(0, "ConnectionLost")
DOUBTS = {
    "empty ETag": EMPTY,
    "cut off": Answer(200, {}, b"<?xml"),
    "login page": Answer(200, {}, b"<html>please log in</html>"),
    "lost": LOST,
    "500": refuse(500, "InternalError"),
    "gateway": refuse(504, ""),
    "no such upload": refuse(404, "NoSuchUpload"),
    "412": refuse(412, "PreconditionFailed"),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_completion_that_happened_is_recognised_whatever_the_server_says(doubt: str, by_parts: Carrier) -> None:
    shelves = large_shelves()
    answer_completion(shelves, DOUBTS[doubt], done=True)
    assert move(shelves, way_of(by_parts)) == Copied(Outcome.MIGRATED, 10)
    assert "AbortMultipartUpload production" not in shelves.operations
    assert "GetObject production" not in shelves.operations, "the ETag of the parts says it all"


@pytest.mark.parametrize("doubt", ["empty ETag", "lost", "gateway", "cut off"])
def test_an_upload_that_may_still_be_completed_is_not_aborted(doubt: str, by_parts: Carrier) -> None:
    shelves = large_shelves()
    answer_completion(shelves, DOUBTS[doubt], done=False)
    with pytest.raises(ObjectError) as caught:
        move(shelves, way_of(by_parts))
    assert caught.value.retryable
    assert shelves.production == {}
    assert len(shelves.uploads) == 1


@pytest.mark.parametrize("answer", [LOST, refuse(500, "InternalError")])
def test_a_completion_that_has_not_happened_is_asked_for_again(answer: Answer, by_parts: Carrier) -> None:
    shelves = large_shelves()
    shelves.interfere = lambda request: (
        answer if request.operation == COMPLETE and shelves.operations.count(f"{COMPLETE} production") == 1 else None
    )
    assert move(shelves, way_of(by_parts)) == Copied(Outcome.MIGRATED, 10)


@pytest.mark.parametrize("parts_have_digests", [True, False])
def test_another_object_is_not_taken_for_the_one_that_was_completed(parts_have_digests: bool) -> None:
    shelves = large_shelves()

    def interfere(request: Request) -> Answer | None:
        if request.operation == "UploadPart" and not parts_have_digests:
            return Answer(200, {"etag": '"no-digest"'})
        if request.operation == COMPLETE:
            shelves.production[NEW] = Stored(b"another!!!")
            return LOST
        return None

    shelves.interfere = interfere
    assert move(shelves, way_of(StreamCopy(threshold_bytes=4))).outcome is Outcome.CONFLICT
    assert shelves.production[NEW].body == b"another!!!"


# Legacy objects that change on the way


@pytest.mark.parametrize("heeds_pins", [True, False])
def test_a_legacy_object_that_changes_during_a_copy_by_parts_is_not_patched_together(
    heeds_pins: bool, by_parts: Carrier
) -> None:
    """moto and Ceph RGW ignore x-amz-copy-source-if-match."""
    shelves = large_shelves()
    shelves.heeds_pins = heeds_pins

    def rewrite(request: Request) -> None:
        if dict(request.query).get("partNumber") == "2" or header(request, "Range") == "bytes=4-7":
            shelves.legacy[OLD] = Stored(LARGE[::-1])

    shelves.interfere = rewrite
    with pytest.raises(ServerFault, match="ObjectChanged"):
        move(shelves, way_of(by_parts))
    assert shelves.production == {}
    assert shelves.uploads == {}
    shelves.interfere = lambda _: None
    assert move(shelves, way_of(by_parts)) == Copied(Outcome.MIGRATED, 10)
    assert shelves.production[NEW].body == LARGE[::-1]


# What leads to parts, and what does not


@pytest.mark.parametrize(("code", "parts"), [("InvalidRequest", False), ("EntityTooLarge", True)])
def test_only_an_object_that_is_too_large_goes_by_parts(code: str, parts: bool) -> None:
    shelves = shelves_with(LARGE)
    shelves.interfere = lambda request: refuse(400, code) if request.operation == "CopyObject" else None
    way = way_of(ServerCopy("old"))
    if parts:
        assert move(shelves, way).outcome is Outcome.MIGRATED
        return
    with pytest.raises(ObjectError, match=code):
        move(shelves, way)
    assert "CreateMultipartUpload production" not in shelves.operations


def test_an_empty_object_never_goes_by_parts() -> None:
    shelves = shelves_with(b"")
    shelves.interfere = lambda request: refuse(400, "EntityTooLarge") if request.operation == "CopyObject" else None
    with pytest.raises(ObjectError, match="EntityTooLarge"):
        move(shelves, way_of(ServerCopy("old")))
