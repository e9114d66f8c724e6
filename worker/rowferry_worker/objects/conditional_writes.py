"""Which writes heed `If-None-Match: *`? Known for each operation by itself, asked once, with a real object."""

import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Literal

from msgspec.structs import replace

from rowferry.errors import ObjectNotFound, ObjectRejected, PreconditionFailed
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry.s3.retry import TRIES
from rowferry_worker.objects.requests import ObjectRequests, demand, object_changed

LOOK_AGAIN_AFTER = timedelta(seconds=2)
"""A write that has taken so long looks again before its last bytes: not every server heeds a condition at the end."""

_log = logging.getLogger(__name__)

CONDITION_REFUSED = frozenset({"NotImplemented", "InvalidArgument", "HTTP 501"})
"""Error codes by which a server may say that it does not know If-None-Match, or If-Match."""

WriteOperation = Literal["PutObject", "CopyObject", "CompleteMultipartUpload"]
"""The operations that put an object in its place."""


class ConditionalWriteSupport:
    """What a worker knows of one production bucket's server; shared by all its copies, used on the event loop only.

    Servers that heed the condition on one operation ignore it on another (Ceph RGW and gofakes3: PutObject, not
    CompleteMultipartUpload), so each operation is known by itself. Each write has the condition, from the first of a
    process on, until the server is known to ignore or to refuse it. As long as it is not known to heed it, each object
    costs a HEAD before its copy. The first object that was copied is copied once more under the condition: 412 proves
    that the server heeds it, 200 that it does not (it then has written the same bytes again). No probe object is left
    behind. What completes an upload is never trusted: a HEAD costs little beside the parts.
    """

    def __init__(self, bucket: str, supported: dict[WriteOperation, bool] | None = None) -> None:
        """`bucket` is the production bucket's name, for the log; `supported`: what is known already."""
        self._bucket = bucket
        self._supported = supported or {}
        self._probing: set[WriteOperation] = set()
        self.expects_existing = False
        """Whether an object was found at the last key that was looked at: this is probably a rerun."""
        self.confirms_digests: bool | None = None
        """Whether the ETags of PutObject were the MD5 of what was sent; False for good once one was not."""
        self.pins_completions = True
        """Whether If-Match goes with completions that replace an object; False for good once one was refused for it."""

    def supported(self, operation: WriteOperation) -> bool | None:
        """Return whether the server heeds the condition on an operation; None while that is unknown."""
        return self._supported.get(operation)

    def begin_probe(self, operation: WriteOperation) -> bool:
        """Return True to the one copy that is to find out; it must call `note` in the end."""
        if operation in self._supported or operation in self._probing:
            return False
        self._probing.add(operation)
        return True

    def note(self, operation: WriteOperation, supported: bool | None) -> None:
        """Note what the server did; None: it left that open, and another copy may find out."""
        self._probing.discard(operation)
        if supported is None or self._supported.get(operation) == supported:
            return
        self._supported[operation] = supported
        fields = {"bucket": self._bucket, "operation": operation}
        if supported:
            _log.info("the server honours If-None-Match, so objects are copied without a HEAD", extra=fields)
        else:
            _log.info("the server ignores If-None-Match, so every object costs a HEAD before its copy", extra=fields)


class ObjectExists(PreconditionFailed):
    """An object exists at the production key already; `response` has its headers."""

    def __init__(self, response: Response) -> None:
        """Keep the headers that were seen."""
        super().__init__("PreconditionFailed", "an object exists at the production key")
        self.response = response


class WriteGuard:
    """Keeps the write of one object from overwriting another: by a look as late as can be, and by the condition."""

    __slots__ = ("_looked", "_mode", "_own_etag", "_prepared_at", "_s3", "_support", "_target_key")

    def __init__(
        self,
        s3: ObjectRequests,
        support: ConditionalWriteSupport,
        target_key: str,
        mode: Literal["protect", "probe", "overwrite", "replace"] = "protect",
        own_etag: str = "",
    ) -> None:
        """`probe`: write over our own object, under the condition; `overwrite`: write over anything, as told to.

        `replace`: write over one object only: our own, which may be damaged, or one that is to be replaced.
        `own_etag`: that object's, unquoted.
        """
        self._s3 = s3
        self._support = support
        self._target_key = target_key
        self._mode = mode
        self._own_etag = own_etag
        self._looked = False
        self._prepared_at = 0.0
        """When the last try was prepared, by time.monotonic()."""

    def may_replace(self, existing: Response) -> bool:
        """Return whether an object that was seen may be written over."""
        return self._mode == "overwrite" or (self._mode == "replace" and existing.etag == self._own_etag)

    @property
    def may_trust_digests(self) -> bool:
        """Return whether the server checks what is written, so that the bytes need not be hashed here.

        The object that is probed with is written already: to be on the safe side it is hashed.
        """
        return self._mode != "probe" and self._support.confirms_digests is True

    @property
    def learns_digests(self) -> bool:
        """Return whether this write will show whether the server checks what is written: nobody knows yet."""
        return self._support.confirms_digests is None

    @property
    def completion_pin(self) -> str | None:
        """Return the unquoted ETag that a completion is pinned to: that of the object to be replaced; None: of none."""
        return self._own_etag if self._mode == "replace" and self._support.pins_completions else None

    def note_digest(self, *, confirmed: bool) -> None:
        """Note whether the ETag of what was written is the MD5 of what was sent."""
        support = self._support
        if support.confirms_digests is not False and support.confirms_digests != confirmed:
            if support.confirms_digests is not None:
                _log.warning("the server did not confirm a digest, so bodies are hashed here from now on")
            support.confirms_digests = confirmed

    def note_written(self, etag: str) -> None:
        """Note that an object was written which may be damaged: this copy may write over it, and over no other."""
        if self._mode in {"protect", "replace"}:
            self._mode, self._own_etag = "replace", etag

    async def write(
        self,
        operation: WriteOperation,
        build: Callable[..., Request],
        read_etag: Callable[[Response], str],
        *,
        tries: int = TRIES,
    ) -> tuple[str, Response]:
        """Send what writes the object, and return its ETag and the response.

        `build` makes the request; its `if_none_match` says whether with the condition.
        Where only a look protects an existing object, there is one before each try; a probe overwrites, and is sent
        once. Raises ObjectExists when an object is there.
        """
        request, goes_without = None, False

        async def prepare() -> Request:
            nonlocal request
            request = build(if_none_match=await self.prepare(operation) and not goes_without)
            supported = self._support.supported(operation) is True
            if self._mode == "replace" and supported:
                request = replace(request, headers=(*request.headers, ("If-Match", f'"{self._own_etag}"')))
            return request if supported else replace(request, heeds_condition=False)

        try:
            response = await self._send(operation, prepare, tries)
        except ObjectRejected as refusal:
            if refusal.code not in CONDITION_REFUSED or self._mode != "protect" or self._support.supported(operation):
                raise
            goes_without = True  # there was a look before, as long as it was unknown what the server heeds
            response = await self._send(operation, prepare, tries)
            self._support.note(operation, supported=False)
        assert request is not None
        return demand(read_etag, response, request), response

    async def _send(self, operation: WriteOperation, prepare: Callable[[], Awaitable[Request]], tries: int) -> Response:
        tries = 1 if self._mode == "probe" else tries
        try:
            return await self._s3.send(prepare, tries=tries, turn_of=("production", operation))
        except ObjectNotFound as error:
            if self._mode == "replace" and error.side == "production":  # Amazon S3, to If-Match: ours has gone
                raise object_changed("production", self._target_key) from error
            raise

    async def prepare(self, operation: WriteOperation) -> bool:
        """Return whether to send the condition with the write that follows at once; look first where need be.

        Raises ObjectExists when an object is there; ServerFault when it should be our own and is another.
        """
        self._prepared_at = time.monotonic()
        if self._mode == "overwrite":
            return False
        if self._mode in {"probe", "replace"}:
            await self._look()
            return self._mode == "probe"
        supported = self._support.supported(operation)
        if operation == "CompleteMultipartUpload" or not supported:
            await self._look()
        return supported is not False

    async def look_again(self) -> None:
        """Look once more before the last bytes of a write that has taken long. Raises as `prepare`.

        Not every server heeds a condition, and some do so before they read the body only.
        """
        is_slow = time.monotonic() - self._prepared_at >= LOOK_AGAIN_AFTER.total_seconds()
        if is_slow and self._mode != "overwrite":
            await self._look()

    async def look_early(self) -> None:
        """Look before much work is done in vain, unless it was done. Raises ObjectExists when an object is there."""
        if self._mode == "protect" and not self._looked:
            await self._look()

    def note_refused(self, operation: WriteOperation) -> None:
        """Note that the server does not take the condition with this operation at all."""
        if self._mode == "replace":
            self._support.pins_completions = False
        else:
            self._support.note(operation, supported=False)

    async def _look(self) -> None:
        self._looked = True
        existing = await self._s3.find("production", self._target_key)
        if self._mode != "protect":
            if existing is None or existing.etag != self._own_etag:
                raise object_changed("production", self._target_key)
            return
        self._support.expects_existing = existing is not None
        if existing is not None:
            raise ObjectExists(existing)
