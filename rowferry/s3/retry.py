"""The retry loop of S3 requests, and how long every retry waits."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from random import SystemRandom
from typing import Protocol

from rowferry.errors import CutOff, ObjectError, ServerFault, Throttled, Unreachable
from rowferry.plan import SideName
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
Reserve = Callable[[SideName, str], timedelta]
"""Takes the turn of a request by its side and operation under a rate limit, and returns how long to wait for it.

More than LONGEST_TURN: the turn was not taken and is to be asked for again after that.
"""


class Record(Protocol):
    """Is told of each try: its request, its result, the seconds it took, and whether it is tried `again`."""

    def __call__(self, request: Request, result: Response | ObjectError, seconds: float, *, again: bool) -> None:
        """Record the try; must not block."""
        ...


async def send_with_retries(
    send: Send,
    request: Request | Callable[[], Awaitable[Request]],
    *,
    tries: int = TRIES,
    turn_of: tuple[SideName, str] | None = None,
    reserve: Reserve | None = None,
    record: Record | None = None,
) -> Response:
    """Send a request until it succeeds, at most `tries` times, and return the response. Raises the last error.

    A callable is awaited before each try and returns the request: a write that a condition does not protect must look
    each time whether an object has appeared at its key. `turn_of` is then that request's side and operation: its turn
    is waited for before the look, which would else be old by the time of the write.
    """
    if isinstance(request, Request):
        turn_of = request.side, request.operation
    for tried in range(1, tries + 1):
        if reserve is not None and turn_of is not None and (wait := reserve(*turn_of)):
            await wait_for_turn(wait, reserve, *turn_of)
        to_send = request if isinstance(request, Request) else await request()
        started = time.monotonic()
        try:
            response = await send(to_send)
        except ObjectError as error:
            again = tried < tries and may_pass(error)
            if record is not None and not _is_of_source(to_send, error):
                record(to_send, error, time.monotonic() - started, again=again)
            if not again:
                raise
            await asyncio.sleep(pause_before_retry(error, tried).total_seconds())
        else:
            if record is not None:
                record(to_send, response, time.monotonic() - started, again=False)
            return response
    raise AssertionError(tries)  # the last try returns or raises


async def wait_for_turn(wait: timedelta, reserve: Reserve, side: SideName, operation: str) -> None:
    """Wait as long as `reserve` has said; a turn that is too far away is asked for again."""
    while wait:
        await asyncio.sleep(min(wait, LONGEST_TURN).total_seconds())
        if wait <= LONGEST_TURN:
            return
        wait = reserve(side, operation)


def _is_of_source(request: Request, error: ObjectError) -> bool:
    """Return whether the source of a request's body has failed: what it has asked for itself is recorded already."""
    return request.source is not None and (error.side, error.operation) != (request.side, request.operation)


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
