"""Which objects go in one PUT: until one was too slow, or failed for its size, all that S3 takes."""

import time

import pytest

from rowferry.errors import (
    AccessDenied,
    Cancelled,
    CutOff,
    NotFinished,
    ObjectDamaged,
    ObjectError,
    ObjectRejected,
    PreconditionFailed,
    ServerFault,
    Throttled,
    TimedOut,
    Unreachable,
)
from rowferry.s3.operations import PUT_LIMIT_BYTES
from rowferry_worker.copying.put_limit import (
    ALWAYS_BYTES,
    NO_TRIAL_SECONDS,
    TRIED_BYTES,
    GoByParts,
    PutLimit,
)
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.objects.link_trial import TooSlow
from rowferry_worker.objects.own_copies import DamagedWrite
from rowferry_worker.objects.pipe import MOST_SHARE_BYTES, PIPE_BYTES, share_of_pipe
from support.s3.copies import NEW, copy_once, fake_with, options_of

MB = 1_000_000


TOO_LARGE = [ObjectRejected("EntityTooLarge", ""), ObjectRejected("HTTP 413", ""), AccessDenied("HTTP 403", "a page")]
FREE = [Throttled("SlowDown", "")]
COUNTED = [ServerFault("HTTP 502", ""), TimedOut("TimedOut", ""), Unreachable("ConnectionLost", "")]


@pytest.mark.parametrize(
    ("error", "end"),
    [(error, GoByParts) for error in [TooSlow(MB), *TOO_LARGE]]
    + [(error, type(None)) for error in FREE]
    + [(error, NotFinished) for error in COUNTED],
    ids=lambda value: getattr(value, "code", ""),
)
def test_after_a_large_put_that_failed_such_go_by_parts_for_ten_minutes(
    error: ObjectError, end: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, now = PutLimit(), time.monotonic()
    assert isinstance(limit.judge(error, PUT_LIMIT_BYTES), end)
    assert not limit.allows(PUT_LIMIT_BYTES)
    assert limit.allows(TRIED_BYTES)
    monkeypatch.setattr(time, "monotonic", lambda: now + NO_TRIAL_SECONDS + 1)
    assert limit.allows(PUT_LIMIT_BYTES)


def test_a_link_that_is_slow_for_the_largest_may_pass_those_of_half_the_size() -> None:
    limit = PutLimit()
    assert isinstance(limit.judge(TooSlow(MB), PUT_LIMIT_BYTES), GoByParts)
    assert limit.allows(PUT_LIMIT_BYTES // 2)
    assert not limit.allows(PUT_LIMIT_BYTES // 2 + 1)


def test_a_slow_link_lets_nothing_pass_that_was_refused_before() -> None:
    limit = PutLimit()
    for error in (ObjectRejected("HTTP 413", ""), TooSlow(MB)):
        assert isinstance(limit.judge(error, PUT_LIMIT_BYTES), GoByParts)
    assert not limit.allows(TRIED_BYTES + 1)


OTHER = [
    AccessDenied("AccessDenied", ""),
    PreconditionFailed("PreconditionFailed", ""),
    ObjectRejected("InvalidTag", ""),
    ObjectDamaged("DigestMismatch", ""),
    DamagedWrite("DigestMismatch", ""),
    ServerFault("ObjectChanged", ""),
    CutOff("Silent", ""),
    Cancelled("Cancelled", ""),
]


@pytest.mark.parametrize(
    ("error", "size"),
    [(error, PUT_LIMIT_BYTES) for error in OTHER] + [(error, TRIED_BYTES) for error in TOO_LARGE + FREE + COUNTED],
    ids=lambda value: getattr(value, "code", ""),
)
def test_what_parts_would_meet_as_well_or_was_not_tried_is_no_failure_of_one_put(error: ObjectError, size: int) -> None:
    limit = PutLimit()
    assert limit.judge(error, size) is None
    assert limit.allows(PUT_LIMIT_BYTES)


def test_few_large_objects_are_begun_at_once() -> None:
    assert share_of_pipe(1000) == 1000
    assert share_of_pipe(MB) == PIPE_BYTES
    assert share_of_pipe(80 * MB) == 10 * MB
    assert share_of_pipe(PUT_LIMIT_BYTES) == MOST_SHARE_BYTES


def test_a_link_that_is_slow_for_small_ones_passes_what_a_part_has() -> None:
    limit = PutLimit()
    for _ in range(9):
        assert isinstance(limit.judge(TooSlow(MB), 2 * ALWAYS_BYTES), GoByParts)
    assert limit.allows(ALWAYS_BYTES)
    assert not limit.allows(ALWAYS_BYTES + 1)


def test_an_object_that_would_pass_too_slowly_goes_by_parts() -> None:
    body = b"x" * (ALWAYS_BYTES + 1)
    for is_slow, operation in ((False, "PutObject"), (True, "CompleteMultipartUpload")):
        fake, method = fake_with(body), StreamCopy()
        if is_slow:
            method._put_limit.judge(TooSlow(MB), ALWAYS_BYTES + 1)
        copy_once(fake, options_of(method, "supported"))
        assert f"{operation} production" in fake.operations
        assert fake.production[NEW].body == body
