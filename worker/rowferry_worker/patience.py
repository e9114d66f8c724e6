"""Sends a request again where that may help, with a pause that grows; each try is observed by itself."""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Protocol

from rowferry.errors import ServerFault, Throttled, Unreachable
from rowferry.s3_answer import Answer
from rowferry.s3_request import Request
from rowferry_worker.alarm import Alarm
from rowferry_worker.retry import retry_delay

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
PASSING = (Throttled, ServerFault, Unreachable)
"""Errors that a short pause may cure. A request past its deadline (TimedOut) has waited long enough."""


class Patience:
    """Decorates the sending of requests with retries: every request of a journey may safely be sent twice."""

    def __init__(self, observe: Observe) -> None:
        """`observe` is told of each try."""
        self._observe = observe
        self._alarm = Alarm()

    def send(
        self,
        send: Send,
        request: Request,
        on_answer: Callable[[Answer], None],
        *,
        reserve: Reserve | None = None,
        tried: int = 0,
    ) -> None:
        """Send a request and give the last answer to `on_answer`; `tried` counts the tries before this one.

        Each try takes its turn: a fleet's bound counts requests, not objects.
        """

        def try_now() -> None:
            self._try(send, request, on_answer, reserve=reserve, tried=tried)

        if reserve is not None and (wait := reserve(request)):
            self._alarm.call_later(wait, try_now)
        else:
            try_now()

    def _try(
        self,
        send: Send,
        request: Request,
        on_answer: Callable[[Answer], None],
        *,
        reserve: Reserve | None,
        tried: int,
    ) -> None:
        began = time.monotonic()

        def judge(answer: Answer) -> None:
            again = isinstance(answer.error, PASSING) and tried + 1 < TRIES
            self._observe(request, answer, time.monotonic() - began, again=again)
            if not again:
                on_answer(answer)
                return
            wait = retry_delay(tried + 1, base=BASE, longest=LONGEST)
            again_later = partial(self.send, send, request, on_answer, reserve=reserve, tried=tried + 1)
            self._alarm.call_later(wait, again_later)

        send(request, judge)
