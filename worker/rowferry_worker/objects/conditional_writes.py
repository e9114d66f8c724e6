"""Which writes heed `If-None-Match: *`? Known for each operation by itself, asked once, with a real object."""

import logging
from collections.abc import Callable
from threading import Lock
from typing import Literal

from msgspec.structs import replace

from rowferry.errors import PreconditionFailed
from rowferry.s3.operations import Request
from rowferry.s3.responses import Answer
from rowferry_worker.objects.journey import Steps, changed, find, head
from rowferry_worker.objects.patience import TRIES, may_pass

_log = logging.getLogger(__name__)

Belief = Literal["unknown", "asking", "honoured", "ignored"]
Writing = Literal["PutObject", "CopyObject", "CompleteMultipartUpload"]
"""The operations that put an object in its place."""


class Condition:
    """What a worker knows of one production bucket's server; shared by all its journeys.

    Servers that heed the condition on one operation ignore it on another (Ceph RGW and gofakes3: PutObject, not
    CompleteMultipartUpload), so there is one belief for each. Until it knows, and where the server ignores the
    condition, each object costs a HEAD before its copy. The first object that was copied is copied once more under
    the condition: 412 proves that the server honours it, 200 that it does not (it then has written the same bytes
    again). No probe object is left behind. What completes an upload is never believed: a HEAD costs little beside
    the parts.
    """

    def __init__(self, bucket: str) -> None:
        """`bucket` is the production bucket's name, for the log."""
        self._bucket = bucket
        self._beliefs: dict[Writing, Belief] = {}
        self._turn = Lock()
        self.expects_standing = False
        """Whether the last object that was looked for stood at its key already: this is probably a rerun."""

    def belief(self, operation: Writing) -> Belief:
        """Return what is known of an operation."""
        return self._beliefs.get(operation, "unknown")

    def begin_asking(self, operation: Writing) -> bool:
        """Return True to the one journey that is to ask."""
        with self._turn:
            if self.belief(operation) != "unknown":
                return False
            self._beliefs[operation] = "asking"
            return True

    def answer(self, operation: Writing, belief: Literal["unknown", "honoured", "ignored"]) -> None:
        """Note what the server did; "unknown" lets another journey ask."""
        if self._beliefs.get(operation) == belief:
            return
        self._beliefs[operation] = belief
        fields = {"bucket": self._bucket, "operation": operation}
        if belief == "ignored":
            _log.info("the server ignores If-None-Match, so every object costs a HEAD before its copy", extra=fields)
        elif belief == "honoured":
            _log.info("the server honours If-None-Match, so objects are copied without a HEAD", extra=fields)


class Standing(PreconditionFailed):
    """An object stands at the production key already; `answer` has its headers."""

    def __init__(self, answer: Answer) -> None:
        """Keep the headers that were seen."""
        super().__init__("PreconditionFailed", "an object stands at the production key")
        self.answer = answer


class Guard:
    """Keeps the write of one object from overwriting another: by a look as late as can be, and by the condition."""

    __slots__ = ("_condition", "_looked", "_mode", "_own_etag", "_target_key")

    def __init__(
        self,
        condition: Condition,
        target_key: str,
        mode: Literal["protect", "ask", "overwrite"] = "protect",
        own_etag: str = "",
    ) -> None:
        """`ask`: write over our own object, under the condition; `overwrite`: write over anything, as told to.

        `own_etag`: our own object's, unquoted.
        """
        self._own_etag = own_etag
        self._condition = condition
        self._target_key = target_key
        self._mode = mode
        self._looked = False

    @property
    def overwrites(self) -> bool:
        """Return whether anything may be overwritten."""
        return self._mode == "overwrite"

    def prepare(self, operation: Writing) -> Steps[bool]:
        """Return whether to send the condition with the write that follows at once; look first where need be.

        Raises Standing when an object is there; ServerFault when it should be our own and is another.
        """
        if self._mode == "overwrite":
            return False
        if self._mode == "ask":
            found = yield from head("production", self._target_key)
            if found.etag != self._own_etag:
                raise changed("production", self._target_key)
            return True
        completes = operation == "CompleteMultipartUpload"
        belief = self._condition.belief(operation)
        if completes or belief != "honoured":
            yield from self._look()
        return belief == "honoured" or (completes and belief != "ignored")

    def write(self, operation: Writing, build: Callable[[bool], Request]) -> Steps[tuple[Request, Answer]]:
        """Send what writes the object, built with the condition or without it; return it and its last answer.

        Where only a look protects what stands, there is one before each try. Raises Standing when an object is there.
        """
        tries = TRIES - 1 if self._mode == "ask" else 0  # it overwrites, and is sent once
        while True:
            condition = yield from self.prepare(operation)
            request = build(condition)
            if tries:
                request = replace(request, tries=tries)
            answer = yield request
            tries += 1
            if condition or tries >= TRIES or not may_pass(answer):
                return request, answer

    def look_early(self) -> Steps[None]:
        """Look before much work is done in vain, unless it was done. Raises Standing when an object is there."""
        if self._mode == "protect" and not self._looked:
            yield from self._look()

    def note_refused(self, operation: Writing) -> None:
        """Note that the server does not take the condition with this operation at all."""
        self._condition.answer(operation, "ignored")

    def _look(self) -> Steps[None]:
        self._looked = True
        standing = yield from find("production", self._target_key)
        self._condition.expects_standing = standing is not None
        if standing is not None:
            raise Standing(standing)
