"""Sends a request again where that may help, with a pause that grows; each try is observed by itself."""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Protocol

from rowferry.errors import CutOff, ServerFault, Throttled, Unreachable
from rowferry.s3.operations import FORBID_OVERWRITE, Request
from rowferry.s3.responses import Answer
from rowferry_worker.objects.alarm import Alarm
from rowferry_worker.objects.retry import retry_delay

Send = Callable[[Request, Callable[[Answer], None]], None]
"""Sends a request and gives its answer, exactly once and never from within the call, to the function."""


Reserve = Callable[[Request], timedelta]
"""Takes a request's turn under whatever bounds the rate, and returns how long to wait before it is sent."""


class Observe(Protocol):
    """Told of each try: the request, its answer, the seconds it took, and whether it is sent `again`."""

    def __call__(self, request: Request, answer: Answer, seconds: float, *, again: bool) -> None:
        """Take the try in; must not block: it runs where the answers arrive."""
        ...


TRIES = 6
"""Five retries, as the AWS SDKs' standard for S3 transfers; what still fails then is the batch's to retry."""
BASE = timedelta(seconds=0.1)
LONGEST = timedelta(seconds=5)
LONGEST_ASKED = timedelta(seconds=30)
"""A server that asks for a longer pause (Retry-After) is asked again after this one all the same."""
PASSING = (Throttled, ServerFault, Unreachable)
"""Errors that a short pause may cure. A request past its deadline (TimedOut) has waited long enough."""


class Patience:
    """Decorates the sending of requests with retries, where they may safely be sent twice.

    What only a look has kept from overwriting an object is answered after the pause: its journey looks once more
    before it asks for the same again.
    """

    def __init__(self, observe: Observe, alarm: Alarm | None = None) -> None:
        """`observe` is told of each try; `alarm`: whose thread to wait on, None: one of its own."""
        self._observe = observe
        self.alarm = alarm or Alarm()

    def send(
        self, send: Send, request: Request, on_answer: Callable[[Answer], None], *, reserve: Reserve | None = None
    ) -> None:
        """Send a request and give the last answer to `on_answer`.

        Each try takes its turn: a fleet's bound counts requests, not objects.
        """
        _Errand(self._observe, self.alarm, send, request, on_answer, reserve=reserve).begin()


class _Errand:
    """One request, from its first try to its last answer."""

    __slots__ = ("_alarm", "_began", "_observe", "_on_answer", "_request", "_reserve", "_send", "_tried")

    def __init__(
        self,
        observe: Observe,
        alarm: Alarm,
        send: Send,
        request: Request,
        on_answer: Callable[[Answer], None],
        *,
        reserve: Reserve | None,
    ) -> None:
        self._observe = observe
        self._alarm = alarm
        self._send = send
        self._request = request
        self._on_answer = on_answer
        self._reserve = reserve
        self._tried = request.tries

    def begin(self) -> None:
        """Try when the turn has come."""
        if self._reserve is not None and (wait := self._reserve(self._request)):
            self._alarm.call_later(wait, self._try)
        else:
            self._try()

    def _try(self) -> None:
        self._began = time.monotonic()
        self._send(self._request, self._judge)

    def _judge(self, answer: Answer) -> None:
        """Hand the answer over, or begin again after a pause."""
        self._tried += 1
        again = self._tried < TRIES and may_pass(answer)
        self._observe(self._request, answer, time.monotonic() - self._began, again=again)
        if again:
            asked = (answer.error.retry_after if answer.error else None) or timedelta()
            pause = retry_delay(self._tried, base=BASE, longest=LONGEST)
            then = partial(self._on_answer, answer) if _needs_look(self._request) else self.begin
            self._alarm.call_later(max(pause, min(asked, LONGEST_ASKED)), then)
        else:
            self._on_answer(answer)


def may_pass(answer: Answer) -> bool:
    """Return whether the same request may have another answer after a short pause."""
    return isinstance(answer.error, PASSING) and not isinstance(answer.error, CutOff)


def _needs_look(request: Request) -> bool:
    """Return whether a request would overwrite what has appeared during the pause.

    The condition of a completion protects nothing where the server ignores it, and the completion may have happened.
    """
    if request.operation == "CompleteMultipartUpload":
        return True
    return request.operation in {"PutObject", "CopyObject"} and FORBID_OVERWRITE not in request.headers
