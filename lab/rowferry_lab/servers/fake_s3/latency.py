"""How long the fake S3 server takes for a response, and when the responses leave."""

import asyncio
import random
from heapq import heapify, heappop, heappush
from itertools import count
from math import exp
from typing import Protocol

from rowferry_lab.servers.fake_s3.http import Response
from rowferry_lab.servers.fake_s3.settings import Latency

MAX_SECONDS = 10.0
TIMER_SECONDS = 0.0005
"""How much too early a response may leave: an event loop's timers know milliseconds."""


class Receiver(Protocol):
    """What a response is handed to when it is due."""

    def write(self, response: Response) -> None:
        """Send it."""
        ...


class LatencyModel:
    """Draws how long each response takes."""

    def __init__(self, latency: Latency, seed: int) -> None:
        """Take the first setting."""
        self._dice = random.Random(seed)  # noqa: S311 - to be repeatable, not to be secret
        self.set_latency(latency)

    def set_latency(self, latency: Latency) -> None:
        """Let all further responses take as long as this says."""
        self.latency = latency

    def draw(self) -> float:
        """Return the seconds that a response takes."""
        return min(self._draw_service(), MAX_SECONDS)

    def _draw_service(self) -> float:
        latency, dice = self.latency, self._dice
        if latency.instant_share and dice.random() < latency.instant_share:
            return 0.0
        return latency.seconds * exp(dice.gauss(0, latency.sigma)) if latency.sigma else latency.seconds


class DelayedWrites:
    """Hands responses over when they are due, with one timer for all: a timer for each costs more than its request."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin with nothing to send."""
        self._loop = loop
        self._waiting: list[tuple[float, int, Receiver, Response]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def send(self, receiver: Receiver, response: Response, due: float) -> None:
        """Hand the response over at this time of the loop's clock."""
        heappush(self._waiting, (due, next(self._numbers), receiver, response))
        if self._timer is None or due < self._timer_at:
            self._set_timer(due)

    def hold_until(self, until: float) -> None:
        """Let nothing leave before this time of the loop's clock."""
        self._waiting = [(max(due, until), *rest) for due, *rest in self._waiting]  # pyright: ignore[reportAttributeAccessIssue]
        heapify(self._waiting)

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = self._loop.call_at(due, self._deliver), due

    def _deliver(self) -> None:
        self._timer = None
        now = self._loop.time() + TIMER_SECONDS
        while self._waiting and self._waiting[0][0] <= now:
            _, _, receiver, response = heappop(self._waiting)
            receiver.write(response)
        if self._waiting:
            self._set_timer(self._waiting[0][0])
