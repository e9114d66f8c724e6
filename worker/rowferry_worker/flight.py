"""Drives journeys: many at once, never more than the limit, all the batches of a process sharing it."""

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from threading import Event, Lock

from rowferry.errors import Cancelled, ObjectError, Withdrawn
from rowferry.s3_answer import Answer
from rowferry_worker import metrics
from rowferry_worker.journey import Copied, Journey
from rowferry_worker.limit import Limit
from rowferry_worker.patience import Patience, Reserve, Send
from rowferry_worker.traffic import observe_try

_log = logging.getLogger(__name__)

Ended = Copied | ObjectError


@dataclass(slots=True)
class Load:
    """The journeys of one batch, and how each ended."""

    send: Send
    reserve: Reserve | None
    ends: list[Ended | None]
    began: list[float]
    """When each journey began, by time.monotonic()."""
    remaining: int
    done: Event = field(default_factory=Event)
    fault: Exception | None = None
    """A mistake of our own in a journey: the batch must not trust its results."""

    def wait(self, timeout: timedelta) -> bool:
        """Return whether all journeys have ended, after at most `timeout`. Raises `fault` where there is one."""
        if not self.done.wait(timeout.total_seconds()):
            return False
        if self.fault is not None:
            raise self.fault
        return True


class Flight:
    """At most as many journeys are under way as the limit says; the rest wait in the order of their launch."""

    def __init__(self, most: int, least: int = 1) -> None:
        """`most`, `least`: the bounds of the objects in flight, for the whole process."""
        self.limit = Limit(least, most)
        self._patience = Patience(partial(observe_try, self.limit))
        self.stepped_at = time.monotonic()
        """When a journey last went a step, by time.monotonic()."""
        self._in_flight = 0
        self._waiting: deque[tuple[Load, int, Journey]] = deque()
        self._filling = False
        self._turn = Lock()

    def launch(self, send: Send, journeys: Sequence[Journey], reserve: Reserve | None = None) -> Load:
        """Put journeys in the queue and return at once with their load; `reserve` paces their requests."""
        load = Load(send, reserve, [None] * len(journeys), [0.0] * len(journeys), len(journeys))
        if not journeys:
            load.done.set()
        with self._turn:
            self._waiting.extend((load, index, journey) for index, journey in enumerate(journeys))
        self._fill()
        return load

    def withdraw(self, load: Load) -> None:
        """End the journeys of a load that have not begun, as Withdrawn; those under way go on."""
        with self._turn:
            withdrawn = [waiting for waiting in self._waiting if waiting[0] is load]
            self._waiting = deque(waiting for waiting in self._waiting if waiting[0] is not load)
        for _, index, journey in withdrawn:
            journey.close()
            self._note(load, index, Withdrawn("Withdrawn", "its turn did not come"))

    def _fill(self) -> None:
        """Begin waiting journeys up to the limit; one thread at a time does it for all."""
        while True:
            with self._turn:
                if self._filling or not self._waiting or self._in_flight >= self.limit.value:
                    return
                self._filling = True
                free = self.limit.value - self._in_flight
                starting = [self._waiting.popleft() for _ in range(min(free, len(self._waiting)))]
                self._in_flight += len(starting)
                metrics.objects_in_flight.inc(len(starting))
            for load, index, journey in starting:
                load.began[index] = time.monotonic()
                self._step(load, index, journey, None)
            with self._turn:
                self._filling = False

    def _step(self, load: Load, index: int, journey: Journey, answer: Answer | None) -> None:
        """Give a journey its answer and send what it asks for next."""
        self.stepped_at = time.monotonic()
        try:
            request = next(journey) if answer is None else journey.send(answer)
        except StopIteration as stop:
            self._land(load, index, stop.value)
        except ObjectError as error:
            self._land(load, index, error)
        except Exception as fault:  # noqa: BLE001 - it belongs to the batch, not to the event-loop thread
            load.fault = fault
            self._land(load, index, Cancelled("Fault", str(fault)))
        else:
            go_on = partial(self._step, load, index, journey)
            self._patience.send(load.send, request, go_on, reserve=load.reserve)

    def _land(self, load: Load, index: int, end: Ended) -> None:
        with self._turn:
            self._in_flight -= 1
        metrics.objects_in_flight.dec()
        metrics.copy_seconds.observe(time.monotonic() - load.began[index])
        self._note(load, index, end)
        self._fill()

    def _note(self, load: Load, index: int, end: Ended) -> None:
        with self._turn:
            load.ends[index] = end
            load.remaining -= 1
            landed = load.remaining == 0
        if landed:
            load.done.set()
