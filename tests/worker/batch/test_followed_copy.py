"""Copies of objects that the application rewrites meanwhile: which of two objects counts, and that none stays old."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from rowferry.batch import Outcome
from rowferry.errors import ObjectNotFound, ObjectRejected, ServerFault
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.store import StoredObject
from rowferry_worker.batch.second_look import FOLLOWED
from rowferry_worker.copying.copy import CopyOptions, CopyResult, copy_object
from rowferry_worker.copying.follow import copy_standing, follow
from rowferry_worker.copying.precedence import Timeline
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.ledger import Ledger
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.multipart.records import UploadRecords
from support.s3.copies import NEW, OLD, Support, options_of
from support.s3.fake_buckets import WRITING, FakeBuckets, refuse, stored

NOON = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)
"""Seconds are counted from here on."""


@pytest.fixture(
    params=[ServerCopy("legacy"), StreamCopy(), StreamCopy(threshold_bytes=2)], ids=["server", "put", "parts"]
)
def method(request: pytest.FixtureRequest) -> CopyMethod:
    return request.param


def written_at(body: bytes, second: int, *, by_parts: bool = False) -> StoredObject:
    """Return an object that was written at this second."""
    written = stored(body, written=NOON.timestamp() + second)
    return msgspec.structs.replace(written, etag=f"{written.etag}-2") if by_parts else written


def at(second: float) -> float:
    """Return a second by time.monotonic()."""
    return time.monotonic() - (time.time() - NOON.timestamp() - second)


def copy(fake: FakeBuckets, options: CopyOptions) -> Outcome:
    return fake.run(copy_standing(fake.s3, options, OLD, NEW)).outcome


def copied(method: CopyMethod) -> tuple[FakeBuckets, CopyOptions, CopyResult]:
    """Copy an object that was written at the first second."""
    fake = FakeBuckets(WRITING, {OLD: written_at(b"version 0", 1)})
    options = options_of(method, "supported")
    return fake, options, fake.run(copy_object(fake.s3, options, OLD, NEW))


def look_again(fake: FakeBuckets, options: CopyOptions, result: CopyResult) -> CopyResult:
    return fake.run(follow(fake.s3, options, OLD, NEW, result, may_copy=True))


@pytest.fixture
def remembering(database: str) -> Iterator[LargeObjects]:
    """What lets copies be remembered in PostgreSQL."""
    with closing(Ledger("a worker")) as ledger:
        yield LargeObjects(UploadRecords(ledger.call, "legacy", "production", 1, 1))


@pytest.mark.parametrize("support", ["unknown", "supported", "ignored"])
@pytest.mark.parametrize(
    ("legacy_second", "switched", "outcome"),
    [
        (30, None, Outcome.MIGRATED),
        (30, 5, Outcome.MIGRATED),
        (10, None, Outcome.CONFLICT),  # in the same second
        (10, 5, Outcome.CONFLICT),
        (9, None, Outcome.CONFLICT),
        (9, 5, Outcome.KEPT),
        (9, 14, Outcome.CONFLICT),
    ],
)
def test_the_older_object_is_replaced_and_no_other(
    legacy_second: int, switched: int | None, outcome: Outcome, support: Support, method: CopyMethod
) -> None:
    honours = WRITING if support == "supported" else ()
    fake = FakeBuckets(honours, {OLD: written_at(b"legacy", legacy_second)}, {NEW: written_at(b"another", 10)})
    timeline = Timeline(switched=None if switched is None else at(switched))
    options = replace(options_of(method, support, "older"), timeline=timeline)
    assert copy(fake, options) is outcome
    assert fake.production[NEW].body == (b"legacy" if outcome is Outcome.MIGRATED else b"another")


@pytest.mark.parametrize(
    ("legacy_second", "production_second", "timeline", "outcome"),
    [
        pytest.param(10, 10, Timeline(began=at(0)), Outcome.MIGRATED, id="written-since-the-migration-began"),
        pytest.param(10, 10, Timeline(began=at(20)), Outcome.CONFLICT, id="written-before"),
        pytest.param(10, 10, Timeline(began=at(9)), Outcome.CONFLICT, id="perhaps-written-before"),
        pytest.param(10, 10, Timeline(began=at(0), switched=at(20)), Outcome.MIGRATED, id="before-the-switch"),
        pytest.param(10, 10, Timeline(began=at(0), switched=at(11)), Outcome.CONFLICT, id="perhaps-after-the-switch"),
        pytest.param(10, 10, Timeline(began=at(0), switched=at(5)), Outcome.CONFLICT, id="the-application-may-write"),
        pytest.param(10, 30, Timeline(began=at(0)), Outcome.CONFLICT, id="newer"),
        pytest.param(10, 30, Timeline(abandoned=(at(20), at(40))), Outcome.MIGRATED, id="went-back"),
        pytest.param(10, 50, Timeline(abandoned=(at(20), at(40))), Outcome.CONFLICT, id="written-since-it-went-back"),
        pytest.param(10, 15, Timeline(abandoned=(at(20), at(40))), Outcome.CONFLICT, id="written-before-the-switch"),
    ],
)
def test_what_the_application_cannot_have_written_is_ours(
    legacy_second: int, production_second: int, timeline: Timeline, outcome: Outcome
) -> None:
    """Until it is switched, it writes to the legacy bucket only, and what it wrote before it went back is given up."""
    fake = FakeBuckets(
        WRITING, {OLD: written_at(b"legacy", legacy_second)}, {NEW: written_at(b"another", production_second)}
    )
    options = replace(options_of(StreamCopy(), "supported", "older"), timeline=timeline)
    assert copy(fake, options) is outcome


@pytest.mark.parametrize(
    ("parts", "timeline", "outcome"),
    [
        ("legacy", Timeline(switched=at(0)), Outcome.CONFLICT),
        ("production", Timeline(switched=at(0)), Outcome.CONFLICT),
        ("", Timeline(switched=at(0)), Outcome.KEPT),
        ("production", Timeline(), Outcome.CONFLICT),
        ("production", Timeline(began=at(20)), Outcome.MIGRATED),  # the application writes none there yet
    ],
)
def test_the_time_of_an_upload_may_be_that_of_its_beginning(parts: str, timeline: Timeline, outcome: Outcome) -> None:
    """Amazon S3 tells when an upload by parts was begun, so nobody can tell whether it has ended before or after."""
    seconds = (900, 10) if parts == "production" else (10, 900)
    legacy = written_at(b"legacy", seconds[0], by_parts=parts == "legacy")
    production = written_at(b"another", seconds[1], by_parts=parts == "production")
    fake = FakeBuckets(WRITING, {OLD: legacy}, {NEW: production})
    options = replace(options_of(StreamCopy(), "supported", "older"), timeline=timeline)
    assert copy(fake, options) is outcome


@pytest.mark.parametrize("method", [ServerCopy("legacy"), StreamCopy()], ids=["server", "put"])
def test_an_object_that_comes_before_the_write_is_left_alone(method: CopyMethod) -> None:
    fake = FakeBuckets(WRITING, {OLD: written_at(b"legacy", 30)}, {NEW: written_at(b"another", 10)})

    def write_meanwhile(request: Request) -> None:
        """Once the two objects were compared, by the HEAD of the legacy one, the application writes a third."""
        if request.operation == "HeadObject" and request.bucket == "legacy":
            fake.production[NEW] = written_at(b"the application's", 31)

    fake.interfere = write_meanwhile
    with pytest.raises(ServerFault) as caught:
        copy(fake, options_of(method, "supported", "older"))
    assert caught.value.retryable
    assert fake.production[NEW].body == b"the application's"


def copy_and_follow(fake: FakeBuckets, options: CopyOptions) -> CopyResult:
    """Copy, and look again until nothing has changed, so often as a batch does."""
    result = fake.run(copy_object(fake.s3, options, OLD, NEW))
    for number in range(FOLLOWED + 1):
        before = result
        result = fake.run(follow(fake.s3, options, OLD, NEW, before, may_copy=number < FOLLOWED))
        if result is before:
            break
    return result


@pytest.mark.parametrize("operation", ["GetObject", "PutObject", "CompleteMultipartUpload"])
def test_an_object_that_is_rewritten_while_it_is_copied_is_copied_again(operation: str) -> None:
    """Between the GET and the PUT, or before the parts are put together: the old bytes arrive whole."""
    fake = FakeBuckets(WRITING, {OLD: written_at(b"version 0", 1)})
    is_parts = operation == "CompleteMultipartUpload"

    def rewrite_once(request: Request) -> None:
        if request.operation == operation and fake.legacy[OLD].body == b"version 0":
            if request.bucket == "legacy":
                fake.carry_out(request)
            fake.legacy[OLD] = written_at(b"version 1", 1)

    fake.interfere = rewrite_once
    options = options_of(StreamCopy(threshold_bytes=2 if is_parts else None), "supported")
    assert copy_and_follow(fake, options).outcome is Outcome.MIGRATED
    assert fake.production[NEW].body == b"version 1"


@pytest.mark.parametrize("code", ["InvalidArgument", "InvalidRange"])
@pytest.mark.parametrize("is_rewritten", [True, False])
def test_an_object_that_becomes_shorter_during_its_copy_is_tried_again(code: str, is_rewritten: bool) -> None:
    """The server is asked for bytes beyond its end, and says so in its own words."""
    fake = FakeBuckets(WRITING, {OLD: written_at(b"version 0", 1)})

    def shorten(request: Request) -> Response | None:
        if request.operation != "UploadPartCopy":
            return None
        if is_rewritten:
            fake.legacy[OLD] = written_at(b"v1", 1)
        return refuse(400, code)

    fake.interfere = shorten
    with pytest.raises(ServerFault if is_rewritten else ObjectRejected) as caught:
        fake.run(copy_object(fake.s3, options_of(ServerCopy("legacy", 2), "supported"), OLD, NEW))
    assert caught.value.retryable is is_rewritten


def test_an_equal_object_that_is_rewritten_before_its_row_moves_is_copied_again(method: CopyMethod) -> None:
    fake = FakeBuckets(WRITING, {OLD: written_at(b"version 0", 1)}, {NEW: written_at(b"version 0", 1)})
    options = options_of(method, "supported")
    result = fake.run(copy_object(fake.s3, options, OLD, NEW))
    assert result.outcome is Outcome.KEPT
    fake.legacy[OLD] = written_at(b"version 1", 1)
    assert look_again(fake, options, result).outcome is Outcome.MIGRATED
    assert fake.production[NEW].body == b"version 1"


def test_what_takes_the_place_of_the_copy_is_left_alone(method: CopyMethod) -> None:
    fake, options, result = copied(method)
    fake.legacy[OLD], fake.production[NEW] = written_at(b"version 1", 1), written_at(b"another", 1)
    with pytest.raises(ServerFault, match="written while it was read"):
        look_again(fake, options, result)
    assert fake.production[NEW].body == b"another"


def test_an_object_that_is_deleted_when_it_was_copied_has_arrived(
    method: CopyMethod, caplog: pytest.LogCaptureFixture
) -> None:
    fake, options, result = copied(method)
    del fake.legacy[OLD]
    assert look_again(fake, options, result) == result
    assert "an object was deleted while it was copied; its copy stays" in caplog.text


@pytest.mark.parametrize("seconds", [(5, 8), (7000, 9000), (7000, 7001)])
@pytest.mark.parametrize("rewritten", [False, True])
def test_a_server_that_does_not_say_what_it_copied_is_held_against_time_and_bytes(
    seconds: tuple[int, int], rewritten: bool
) -> None:
    """An object that came by parts has another ETag once it was copied in one piece."""
    first, second = seconds
    fake = FakeBuckets(WRITING, {OLD: written_at(b"version 0", first, by_parts=True)})
    options = options_of(ServerCopy("legacy"), "supported")
    result = CopyResult(Outcome.MIGRATED, etag=stored(b"version 0").etag)
    fake.production[NEW] = written_at(b"version 0", second)
    if rewritten:
        fake.legacy[OLD] = written_at(b"version 1", second, by_parts=True)
    look_again(fake, options, result)
    assert fake.production[NEW].body == fake.legacy[OLD].body


def test_from_the_second_pass_on_a_copy_is_known_as_one_by_its_etag(
    method: CopyMethod, remembering: LargeObjects
) -> None:
    """Nobody could tell by the times whether the application wrote it: so the copy of a worker that died is known."""
    fake = FakeBuckets(WRITING, {OLD: written_at(b"version 0", 1)})
    options = replace(
        options_of(method, "supported", "older"),
        looks_first=True,
        timeline=Timeline(began=at(0), switched=at(0)),
        large_objects=remembering,
    )
    assert fake.run(copy_standing(fake.s3, options, OLD, NEW)).outcome is Outcome.MIGRATED
    fake.production[NEW] = msgspec.structs.replace(fake.production[NEW], written=NOON.timestamp() + 1)
    fake.legacy[OLD] = written_at(b"version 1", 1)
    assert fake.run(copy_standing(fake.s3, options, OLD, NEW)).outcome is Outcome.MIGRATED
    assert fake.production[NEW].body == b"version 1"
    fake.production[NEW], fake.legacy[OLD] = written_at(b"the application's", 1), written_at(b"version 2", 1)
    found = fake.run(copy_standing(fake.s3, options, OLD, NEW))
    assert (found.outcome, found.is_unclear) == (Outcome.CONFLICT, True)


def test_a_copy_that_nobody_saw_end_is_not_taken_for_the_applications(remembering: LargeObjects) -> None:
    """The worker died between the write and its note, and the application had rewritten the object meanwhile."""
    fake = FakeBuckets(WRITING, {OLD: written_at(b"version 1", 9)}, {NEW: written_at(b"version 0", 10)})
    options = replace(options_of(StreamCopy(), "supported", "older"), timeline=Timeline(began=at(0), switched=at(5)))
    assert copy(fake, options) is Outcome.KEPT, "without a note it would be"
    options = replace(options, large_objects=remembering)
    fake.run(options.copies.note_write(NEW, OLD))
    found = fake.run(copy_standing(fake.s3, options, OLD, NEW))
    assert (found.outcome, found.is_unclear) == (Outcome.CONFLICT, True)
    not_switched = replace(options, timeline=Timeline(began=at(0)))
    assert fake.run(copy_standing(fake.s3, not_switched, OLD, NEW)).outcome is Outcome.MIGRATED


def test_a_write_that_did_not_happen_is_nobodys(remembering: LargeObjects) -> None:
    """It was noted before, and another object stood there."""
    fake = FakeBuckets(WRITING, {OLD: written_at(b"version 1", 9)}, {NEW: written_at(b"the application's", 10)})
    options = replace(options_of(StreamCopy(), "supported", "older"), timeline=Timeline(began=at(0), switched=at(5)))
    options = replace(options, large_objects=remembering)
    assert fake.run(copy_standing(fake.s3, options, OLD, NEW)).outcome is Outcome.KEPT
    assert fake.run(copy_standing(fake.s3, options, OLD, NEW)).outcome is Outcome.KEPT
    known = fake.run(options.copies.find_copy(NEW))
    assert known is not None
    assert not known.is_pending


def test_the_bytes_of_an_old_copy_may_be_the_applications_later_on(remembering: LargeObjects) -> None:
    """It went back to what it had before, in production: that is no copy, though it has the ETag of one."""
    noted, later = time.time() - NOON.timestamp(), time.time() - NOON.timestamp() + 3600
    fake = FakeBuckets(WRITING, {OLD: written_at(b"version 1", int(noted) - 60)}, {NEW: written_at(b"version 0", 0)})
    options = replace(options_of(StreamCopy(), "supported", "older"), timeline=Timeline(began=at(0), switched=at(5)))
    options = replace(options, large_objects=remembering)
    fake.run(options.copies.note_copy(NEW, stored(b"version 0").etag, OLD, "another"))
    fake.production[NEW] = written_at(b"version 0", int(later))
    assert fake.run(copy_standing(fake.s3, options, OLD, NEW)).outcome is Outcome.KEPT
    fake.production[NEW] = written_at(b"version 0", int(noted) - 30)
    assert fake.run(copy_standing(fake.s3, options, OLD, NEW)).outcome is Outcome.MIGRATED


@pytest.mark.parametrize(("age_seconds", "is_noted"), [(1, True), (60, False)])
def test_the_copies_of_a_young_migration_are_noted(age_seconds: int, is_noted: bool, remembering: LargeObjects) -> None:
    fake = FakeBuckets(WRITING, {OLD: written_at(b"version 0", 1)})
    timeline = Timeline(began=time.monotonic() - age_seconds)
    options = replace(options_of(StreamCopy(), "supported", "older"), timeline=timeline, large_objects=remembering)
    fake.run(copy_standing(fake.s3, options, OLD, NEW))
    assert fake.run(options.copies.is_own_copy(NEW, stored(b"version 0").etag)) is is_noted


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_copy_that_took_long_may_be_of_before_a_rewrite(seconds: int) -> None:
    """An ETag that is no digest says nothing of the bytes, and the time of a copy is that of its end."""
    opaque = {"x-amz-server-side-encryption": "aws:kms"}
    legacy = msgspec.structs.replace(written_at(b"version 1", 7), etag="opaque", headers=opaque)
    fake = FakeBuckets(WRITING, {OLD: legacy}, {NEW: written_at(b"version 0", 9)})
    options = options_of(ServerCopy("legacy"), "supported")
    result = CopyResult(Outcome.MIGRATED, etag=stored(b"version 0").etag, seconds=seconds)
    found = look_again(fake, options, result)
    assert (found is not result) is bool(seconds)
    assert fake.production[NEW].body == (b"version 1" if seconds else b"version 0")


def test_in_later_passes_an_equal_object_is_kept_by_two_heads(method: CopyMethod) -> None:
    fake = FakeBuckets(WRITING, {OLD: written_at(b"legacy", 1)}, {NEW: written_at(b"legacy", 2)})
    options = replace(options_of(method, "supported", "older"), looks_first=True)
    assert copy(fake, options) is Outcome.KEPT
    assert fake.operations == ["HeadObject production", "HeadObject legacy"]


def test_an_object_on_neither_side_is_missing(method: CopyMethod) -> None:
    fake = FakeBuckets(WRITING)
    with pytest.raises(ObjectNotFound):
        copy(fake, options_of(method, "supported", "older"))
    fake.production[NEW] = written_at(b"the application's", 1)
    assert copy(fake, options_of(method, "supported", "older")) is Outcome.KEPT
