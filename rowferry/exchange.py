"""One request on its way: what awscrt reports of it, and the promise that it is answered exactly once."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from msgspec.structs import replace

from rowferry.crt import Cancellable, keep_thread_state, translate_error
from rowferry.errors import ObjectError, ObjectRejected
from rowferry.s3_answer import Answer, read_answer
from rowferry.s3_request import Request, limit_body

ANSWERED = frozenset(
    {
        "AWS_ERROR_S3_SLOW_DOWN",
        "AWS_ERROR_S3_INTERNAL_ERROR",
        "AWS_ERROR_S3_REQUEST_TIMEOUT",
        "AWS_ERROR_S3_REQUEST_TIME_TOO_SKEWED",
    }
)
"""awscrt's errors that stand for HTTP answers, which it keeps to itself after its last retry."""

ANSWER_TOO_LONG = "AnswerTooLong"
"""The code of the error that stands for an answer of more than `max_body_bytes`."""

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Traffic:
    """What the exchanges of one client share."""

    max_body_bytes: int
    launch: "Callable[[Exchange], None]"
    """Sends an exchange's request."""
    in_flight: "dict[int, Exchange]" = field(default_factory=dict[int, "Exchange"])
    last_answer: float | None = None
    callback_fault: Exception | None = None


class Exchange:
    """One request from `send` to its answer; awscrt calls the methods on its event-loop thread."""

    __slots__ = (
        "_body",
        "_doomed_at",
        "_headers",
        "_is_too_long",
        "_on_answer",
        "_traffic",
        "doom",
        "native",
        "request",
        "sent",
        "started",
    )

    def __init__(self, traffic: Traffic, request: Request, on_answer: Callable[[Answer], None]) -> None:
        """Enter the traffic; the clock runs from here."""
        self._traffic = traffic
        self._on_answer = on_answer
        self._headers: list[tuple[str, str]] = []
        self._body: bytes = b""
        self._is_too_long = False
        self.request = request
        self.sent = limit_body(request, traffic.max_body_bytes)
        """What goes over the wire: awscrt takes in a whole body before it shows any, so never ask for too much."""
        self.started = time.monotonic()
        self.native: Cancellable | None = None
        self.doom: ObjectError | None = None
        """Why it was cancelled, if it was."""
        self._doomed_at = self.started
        traffic.in_flight[id(self)] = self

    def on_headers(self, headers: list[tuple[str, str]], **_: object) -> None:
        """Keep the headers; they come together with the body, when the answer is complete."""
        self._headers = headers
        self._traffic.last_answer = time.monotonic()

    def on_body(self, chunk: bytes, **_: object) -> None:
        """Keep the body of a 2xx answer, unless it is too long: then it is let go, and the answer will say so.

        To raise here would end the request no sooner, since all of it has come, and awscrt would keep the body for as
        long as it keeps the error.
        """
        if self._is_too_long or len(self._body) + len(chunk) > self._traffic.max_body_bytes:
            self._is_too_long = True
            self._body = b""
        else:
            self._body = self._body + chunk if self._body else chunk

    def on_done(
        self,
        error: Exception | None,
        error_headers: list[tuple[str, str]] | None,
        error_body: bytes | None,
        status_code: int | None,
        **_: object,
    ) -> None:
        """Turn what came, or did not come, into the answer and hand it over."""
        keep_thread_state()
        if error is not None and getattr(error, "name", "") in ANSWERED:
            self._traffic.last_answer = time.monotonic()
        if status_code == 416 and self.sent is not self.request:
            # Only an empty object lacks a first byte; then there is no need for a limit.
            self.sent = self.request
            self._traffic.launch(self)
            return
        self.finish(self._read(status_code or 0, error, error_headers, error_body))

    def _read(
        self,
        status: int,
        error: Exception | None,
        error_headers: list[tuple[str, str]] | None,
        error_body: bytes | None,
    ) -> Answer:
        """Return what the server said, or what kept it from saying anything."""
        if self._is_too_long:
            bound = f"the answer is longer than {self._traffic.max_body_bytes} bytes; read the object in ranges"
            return Answer(0, error=ObjectRejected(ANSWER_TOO_LONG, bound))
        if error is not None and error_headers is None:
            return Answer(status, error=self.doom or translate_error(error))
        if status == 206 and self.sent is not self.request:
            status = 200
        headers = {name.lower(): value for name, value in error_headers or self._headers}
        may_hide_error = self.request.operation != "GetObject"
        answer = read_answer(status, headers, error_body or self._body, may_hide_error=may_hide_error)
        if error is None or answer.error is not None:
            return answer
        return replace(answer, error=translate_error(error))

    def hold(self, native: Cancellable) -> None:
        """Keep awscrt's request, to cancel it, for as long as it is under way.

        It holds our methods: kept any longer, the circle would keep awscrt's client from closing.
        """
        self.native = native
        if self.doom is not None:
            native.cancel()
        if id(self) not in self._traffic.in_flight:
            self.native = None

    def cancel(self, doom: ObjectError) -> None:
        """Ask awscrt to give the request up; `doom` becomes its answer, unless the server's comes first."""
        if self.doom is None:
            self._doomed_at = time.monotonic()
            self.doom = doom
            if self.native is not None:
                self.native.cancel()

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
