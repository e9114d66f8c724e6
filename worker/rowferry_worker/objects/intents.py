"""What the write of an object may replace: nothing, our own copy, one object that was seen, or any object."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from msgspec.structs import replace

from rowferry.errors import ObjectError, ObjectNotFound, ObjectRejected
from rowferry.s3.operations import FORBID_OVERWRITE, Pairs, Request
from rowferry.s3.responses import Response
from rowferry.s3.retry import TRIES
from rowferry_worker.objects.conditional_writes import (
    COMPLETE,
    CONDITION_REFUSED,
    ConditionalWriteSupport,
    ObjectExists,
    WriteOperation,
)
from rowferry_worker.objects.requests import ObjectRequests, demand, object_changed

CHECK_AGAIN_AFTER = timedelta(seconds=2)
"""A write that has taken so long checks again before its last bytes: not every server heeds a condition at the end."""


@dataclass(slots=True)
class Target:
    """Where an object is written."""

    s3: ObjectRequests
    support: ConditionalWriteSupport
    key: str
    begun_at: float = 0.0
    """When the last try of the write began, by time.monotonic()."""


@dataclass(frozen=True, slots=True)
class Protect:
    """Write where no object is."""

    def headers(self, support: ConditionalWriteSupport, operation: WriteOperation) -> Pairs:
        """Return the condition, until the server is known to ignore it."""
        return () if support.supported(operation) is False else (FORBID_OVERWRITE,)

    async def check(self, target: Target, operation: WriteOperation | None = None) -> None:
        """Raise ObjectExists when an object is there. `operation`: that of a write that follows at once.

        Nothing is checked where that has a condition which the server is known to heed.
        """
        if operation is not None and operation != COMPLETE and target.support.supported(operation):
            return
        existing = await target.s3.find("production", target.key)
        target.support.expects_existing = existing is not None
        if existing is not None:
            raise ObjectExists(existing)


@dataclass(frozen=True, slots=True)
class Replace:
    """Write over one object only: a copy of ours, which may be damaged, or one that is to be replaced."""

    etag: str
    """That object's, unquoted."""

    def headers(self, support: ConditionalWriteSupport, operation: WriteOperation) -> Pairs:
        """Return the condition, where the server may be expected to heed it."""
        heeds = support.pins_completions if operation == COMPLETE else support.supported(operation) is True
        return (("If-Match", f'"{self.etag}"'),) if heeds else ()

    async def check(self, target: Target, _operation: WriteOperation | None = None) -> None:
        """Raise ServerFault when the object is another, or gone: many servers do not heed the condition."""
        existing = await target.s3.find("production", target.key)
        if existing is None or existing.etag != self.etag:
            raise object_changed("production", target.key)


@dataclass(frozen=True, slots=True)
class Probe:
    """Write over our own copy, once, under the condition that no object is there: to learn whether it is heeded."""

    etag: str
    """That of the copy, unquoted."""

    def headers(self, _support: ConditionalWriteSupport, _operation: WriteOperation) -> Pairs:
        """Return the condition."""
        return (FORBID_OVERWRITE,)

    async def check(self, target: Target, _operation: WriteOperation | None = None) -> None:
        """Raise ServerFault when the object is another, or gone."""
        await Replace(self.etag).check(target)


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Write over any object: it was asked for."""

    def headers(self, _support: ConditionalWriteSupport, _operation: WriteOperation) -> Pairs:
        """Return no condition."""
        return ()

    async def check(self, _target: Target, _operation: WriteOperation | None = None) -> None:
        """Do nothing."""


Intent = Protect | Replace | Probe | Overwrite


def may_replace(intent: Intent, existing: Response) -> bool:
    """Return whether an object that was seen may be written over."""
    return isinstance(intent, Overwrite) or (isinstance(intent, Replace) and existing.etag == intent.etag)


def go_on_over(intent: Intent, etag: str) -> Intent:
    """Return the intent of the next write of an object, where the last one has left an object with this ETag."""
    return Replace(etag) if isinstance(intent, Protect | Replace) else intent


async def check_early(target: Target, intent: Intent) -> None:
    """Check before much work is done in vain. Raises ObjectExists when an object is there that is to be kept."""
    if isinstance(intent, Protect):
        await intent.check(target)


async def check_again(target: Target, intent: Intent) -> None:
    """Check once more before the last bytes of a write that has taken long. Raises as the intent's `check`."""
    if time.monotonic() - target.begun_at >= CHECK_AGAIN_AFTER.total_seconds():
        await intent.check(target)


async def write_object(
    target: Target, intent: Intent, request: Request, read_etag: Callable[[Response], str], *, tries: int = TRIES
) -> tuple[str, Response]:
    """Send what writes the object, under the intent's conditions, and return its ETag and the response.

    `request` has no condition yet; a probe is sent once. Raises ObjectExists or PreconditionFailed when an object is
    there that may not be replaced, ServerFault when the one that was to be replaced is another, or gone.
    """
    support, operation = target.support, cast("WriteOperation", request.operation)
    tries = 1 if isinstance(intent, Probe) else tries
    try:
        response = await _send(target, intent, request, tries)
    except ObjectRejected as refusal:
        if refusal.code not in CONDITION_REFUSED or not isinstance(intent, Protect) or support.supported(operation):
            raise
        response = await _send(target, intent, request, tries, with_condition=False)
        support.note(operation, supported=False)
    except ObjectNotFound as error:
        if isinstance(intent, Replace) and error.side == "production":  # Amazon S3, to If-Match: it has gone
            raise object_changed("production", target.key) from error
        raise
    return demand(read_etag, response, request), response


async def _send(
    target: Target, intent: Intent, request: Request, tries: int, *, with_condition: bool = True
) -> Response:
    """Send a write; right before each try, the key is checked if need be."""
    s3, support, operation = target.s3, target.support, cast("WriteOperation", request.operation)
    for tried in range(1, tries + 1):
        await s3.take_turn("production", operation)
        target.begun_at = time.monotonic()
        await intent.check(target, operation)
        conditions = intent.headers(support, operation) if with_condition else ()
        is_heeded = support.supported(operation) is True
        to_send = replace(request, headers=(*request.headers, *conditions), heeds_condition=is_heeded)
        try:
            return await s3.send_once(to_send)
        except ObjectError as error:
            await s3.wait_before_retry("production", error, tried, tries)
    raise AssertionError(tries)  # the last try returns or raises
