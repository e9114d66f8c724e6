"""Sends a request again where that may help, with a pause that grows; each try is observed by itself."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from rowferry.errors import ServerFault, Throttled, Unreachable
from rowferry.s3_answer import Answer
from rowferry.s3_request import Request
from rowferry_worker.alarm import Alarm
from rowferry_worker.retry import retry_delay

Send = Callable[[Request, Callable[[Answer], None]], None]
"""Sends a request and gives its answer, exactly once and never from within the call, to the function."""


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

    def send(self, send: Send, request: Request, on_answer: Callable[[Answer], None], tried: int = 0) -> None:
        """Send a request and give the last answer to `on_answer`; `tried` counts the tries before this one."""
        began = time.monotonic()

        def judge(answer: Answer) -> None:
            again = isinstance(answer.error, PASSING) and tried + 1 < TRIES
            self._observe(request, answer, time.monotonic() - began, again=again)
            if not again:
                on_answer(answer)
                return
            wait = retry_delay(tried + 1, base=BASE, longest=LONGEST)
            self._alarm.call_later(wait, lambda: self.send(send, request, on_answer, tried + 1))

        send(request, judge)
