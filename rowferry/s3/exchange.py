"""One request on its way: tries, the answer that they end with, and the promise that it is given exactly once."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Protocol

from rowferry.errors import ObjectDamaged, ObjectError, ServerFault
from rowferry.http.event_loop import share_loop
from rowferry.s3.operations import Request, limit_body
from rowferry.s3.responses import Answer, read_answer
from rowferry.s3.results import read_content_range, refuse_unsound

RETRIES = 5
LONGEST = 10
"""A request whose answer keeps coming ends after so many deadlines all the same."""

_logger = logging.getLogger(__name__)


class Cancellable(Protocol):
    """A request that is under way."""

    def cancel(self) -> None:
        """Give it up; its end follows soon."""
        ...


@dataclass(slots=True)
class Traffic:
    """What the exchanges of one client share."""

    max_body_bytes: int
    launch: "Callable[[Exchange], None]"
    """Sends an exchange's request."""
    backoff: timedelta | None = None
    """The most that the first of RETRIES waits; each later one may wait twice as long. None: there are none."""
    review: "Callable[[Exchange, Answer], bool]" = lambda _, __: False
    """Looks into a refusal; returns whether it sees to the exchange's end from here on."""
    in_flight: "dict[int, Exchange]" = field(default_factory=dict[int, "Exchange"])
    last_answer: float | None = None
    callback_fault: Exception | None = None


class Exchange:
    """One request from `send` to its answer; the listener of each of its tries, on the event-loop thread."""

    __slots__ = (
        "_doomed_at",
        "_heard_at",
        "_on_answer",
        "_traffic",
        "_tries",
        "doom",
        "has_new_clock",
        "has_new_keys",
        "is_final",
        "native",
        "request",
        "sent",
        "started",
    )

    def __init__(self, traffic: Traffic, request: Request, on_answer: Callable[[Answer], None]) -> None:
        """Enter the traffic; the clock runs from here."""
        self._traffic = traffic
        self._on_answer = on_answer
        self._tries = 0
        self.request = request
        self.sent = limit_body(request, traffic.max_body_bytes)
        """What goes over the wire: never ask for more than is taken."""
        self.started = time.monotonic()
        self.native: Cancellable | None = None
        self.doom: ObjectError | None = None
        """Why it was cancelled, if it was."""
        self._doomed_at = self.started
        self._heard_at = self.started
        self.is_final = False
        """Whether a refusal is answered as it comes, without looking into it."""
        self.has_new_clock = self.has_new_keys = False
        """Whether it was sent again since the clock was corrected, or the credentials were read again."""
        traffic.in_flight[id(self)] = self

    def on_sign_of_life(self) -> None:
        """Note that the server is there, and at work on this request."""
        self._traffic.last_answer = self._heard_at = time.monotonic()

    def on_answer(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Read what the server said; what it cannot be read for is the failure of this request, and of no other."""
        try:
            self._take_answer(status, headers, body)
        except Exception as fault:
            _logger.exception("an answer could not be read", extra={"operation": self.request.operation})
            words = f"the answer could not be read ({type(fault).__name__})"
            self.finish(Answer(0, error=ServerFault("UnreadableAnswer", words)))

    def _take_answer(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        if status == 416 and self.sent is not self.request:
            # Only an empty object lacks a first byte; then there is no need for a limit.
            self.sent = self.request
            self._traffic.launch(self)
            return
        read = {name.decode("latin-1").lower(): value.decode(errors="surrogateescape") for name, value in headers}
        answer = self._read(status, read, body)
        if answer.error is None or self.doom or not self._traffic.review(self, answer):
            self.end(answer)

    def _read(self, status: int, headers: dict[str, str], body: bytes) -> Answer:
        """Return the answer; a part that we asked for only to be on the safe side must be the whole object."""
        answer = read_answer(status, headers, body, may_hide_error=self.request.operation != "GetObject")
        if answer.error is None and (fault := refuse_unsound(self.sent, answer)) is not None:
            return Answer(0, error=fault)
        if status == 206 and self.sent is not self.request:
            came = read_content_range(answer)
            if came is None or came.total != len(body):
                return Answer(0, error=ObjectDamaged("TruncatedBody", f"{len(body)} bytes came of more"))
            return Answer(200, headers, body)
        return answer

    def on_failure(self, error: ObjectError) -> None:
        """Take the reason why there is no answer."""
        self.end(Answer(0, error=self.doom or error))

    def end(self, answer: Answer) -> None:
        """Hand the answer over, or try once more where that is wanted."""
        error, backoff = answer.error, self._traffic.backoff
        if error is None or backoff is None or not error.retryable or self.doom or self._tries == RETRIES:
            self.finish(answer)
            return
        wait = random.uniform(0, backoff.total_seconds() * 2**self._tries)  # noqa: S311 - spread, not secret
        asked = error.retry_after.total_seconds() if error.retry_after else 0.0  # the deadline bounds it
        wait = max(wait, asked)
        self._tries += 1
        self.native = None
        share_loop().run_later(wait, partial(self._traffic.launch, self))

    def relaunch(self) -> None:
        """Send the request once more, at once."""
        self.native = None
        self._traffic.launch(self)

    def hold(self, native: Cancellable) -> None:
        """Keep the try that is about to leave, to cancel it; each holds the other until the end."""
        self.native = native
        if self.doom is not None:
            native.cancel()

    def cancel(self, doom: ObjectError) -> None:
        """Ask to have the request given up; `doom` becomes its answer, unless the server's comes first."""
        if self.doom is None:
            self._doomed_at = time.monotonic()
            self.doom = doom
            if self.native is not None:
                self.native.cancel()

    def is_overdue(self, now: float, deadline: timedelta) -> bool:
        """Return whether nothing has come for so long by `now`, or the whole takes LONGEST times as long.

        A slow copy is kept alive with white space: what goes on is not silent.
        """
        seconds = deadline.total_seconds()
        return now - self._heard_at > seconds or now - self.started > LONGEST * seconds

    def is_stuck(self, now: float, grace: timedelta) -> bool:
        """Return whether it was cancelled more than `grace` before `now` and still has no answer."""
        return self.doom is not None and now - self._doomed_at > grace.total_seconds()

    def finish(self, answer: Answer) -> None:
        """Hand the answer over, the first time; later calls do nothing (dict.pop is atomic)."""
        if self._traffic.in_flight.pop(id(self), None) is None:
            return
        self.native = None
        try:
            self._on_answer(answer)
        except Exception as fault:
            _logger.exception("a callback failed", extra={"operation": self.request.operation})
            self._traffic.callback_fault = self._traffic.callback_fault or fault
