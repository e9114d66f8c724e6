"""The retry loop of S3 requests, and how long every retry waits."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from random import SystemRandom

from rowferry.errors import CutOff, ObjectError, ServerFault, Throttled, Unreachable
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response

TRIES = 6
"""Five retries, as the AWS SDKs' standard for S3 transfers; the batch retries what still fails."""
REQUEST_BASE = timedelta(seconds=0.1)
REQUEST_LONGEST = timedelta(seconds=5)
LONGEST_RETRY_AFTER = timedelta(seconds=30)
"""A server that asks for a longer pause is asked again after this one."""
LONGEST_TURN = timedelta(seconds=0.2)
"""A turn that is further away is not taken: it is asked for again after so long, since the rate may be another."""
PASSING = (Throttled, ServerFault, Unreachable)
"""Errors that a short pause may cure. A request past its deadline (TimedOut) has waited long enough."""
BASE = timedelta(seconds=2)
LONGEST = timedelta(hours=1)

_random = SystemRandom()

Send = Callable[[Request], Awaitable[Response]]
"""Sends one request once: `ObjectClient.send`."""


async def send_with_retries(send: Send, request: Request, *, tries: int = TRIES) -> Response:
    """Send a request until it succeeds, at most `tries` times, and return the response. Raises the last error."""
    for tried in range(1, tries + 1):
        try:
            return await send(request)
        except ObjectError as error:
            await wait_before_retry(error, tried, tries)
    raise AssertionError(tries)  # the last try returns or raises


async def wait_before_retry(error: ObjectError, tried: int, tries: int) -> None:
    """Wait after the try of this number, which has failed. Raises the error where no other try follows."""
    if tried == tries or not may_pass(error):
        raise error
    await asyncio.sleep(pause_before_retry(error, tried).total_seconds())


async def send_many(send: Send, requests: Iterable[Request], *, at_once: int) -> list[Response | ObjectError]:
    """Send requests with retries, at most `at_once` at a time, and return the result of each in their order."""
    room = asyncio.Semaphore(at_once)

    async def send_one(request: Request) -> Response | ObjectError:
        async with room:
            try:
                return await send_with_retries(send, request)
            except ObjectError as error:
                return error

    return await asyncio.gather(*[send_one(request) for request in requests])


def may_pass(error: ObjectError) -> bool:
    """Return whether the same request may succeed after a short pause."""
    return isinstance(error, PASSING) and not isinstance(error, CutOff)


def pause_before_retry(error: ObjectError, tried: int) -> timedelta:
    """Return how long to wait after `tried` tries, the last of which failed with `error`."""
    pause = retry_delay(tried, base=REQUEST_BASE, longest=REQUEST_LONGEST)
    return max(pause, min(error.retry_after or timedelta(), LONGEST_RETRY_AFTER))


def retry_delay(attempt: int, *, base: timedelta = BASE, longest: timedelta = LONGEST) -> timedelta:
    """Return the wait before the next attempt: full jitter in [0, base * 2**attempt], at most `longest`.

    `attempt` counts the tries already made, from 1. Source: "Exponential Backoff And Jitter",
    AWS Architecture Blog, 2015.
    """
    bound = min(base * 2 ** min(attempt, 32), longest)
    return bound * _random.random()


def jittered(wait: timedelta) -> timedelta:
    """Return a wait between half of `wait` and one and a half times it, so that workers do not march in step."""
    return wait * (0.5 + _random.random())
