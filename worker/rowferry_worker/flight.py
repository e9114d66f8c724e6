"""Drives journeys: many at once, never more than the limit, all the batches of a process sharing it."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event, Lock

from rowferry.errors import Cancelled, ObjectError
from rowferry.s3_answer import Answer
from rowferry.s3_request import Request
from rowferry_worker.journey import Copied, Journey

_log = logging.getLogger(__name__)

Send = Callable[[Request, Callable[[Answer], None]], None]
"""Sends a request and gives its answer, exactly once and never from within the call, to the function."""

Ended = Copied | ObjectError


@dataclass(slots=True)
class Load:
    """The journeys of one batch, and how each ended."""

    send: Send
    ends: list[Ended | None]
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
    """At most `limit` journeys are under way; the rest wait in the order of their launch."""

    def __init__(self, limit: int) -> None:
        """`limit`: objects in flight, for the whole process."""
        self.limit = limit
        self._in_flight = 0
        self._waiting: deque[tuple[Load, int, Journey]] = deque()
        self._filling = False
        self._turn = Lock()

    def launch(self, send: Send, journeys: Sequence[Journey]) -> Load:
        """Put journeys in the queue and return at once with their load."""
        load = Load(send, [None] * len(journeys), len(journeys))
        if not journeys:
            load.done.set()
        with self._turn:
            self._waiting.extend((load, index, journey) for index, journey in enumerate(journeys))
        self._fill()
        return load

    def withdraw(self, load: Load) -> None:
        """End the journeys of a load that have not begun, as Cancelled; those under way go on."""
        with self._turn:
            withdrawn = [waiting for waiting in self._waiting if waiting[0] is load]
            self._waiting = deque(waiting for waiting in self._waiting if waiting[0] is not load)
        for _, index, journey in withdrawn:
            journey.close()
            self._note(load, index, Cancelled("Withdrawn", "the worker was told to stop"))

    def _fill(self) -> None:
        """Begin waiting journeys up to the limit; one thread at a time does it for all."""
        while True:
            with self._turn:
                if self._filling or not self._waiting or self._in_flight >= self.limit:
                    return
                self._filling = True
                free = self.limit - self._in_flight
                starting = [self._waiting.popleft() for _ in range(min(free, len(self._waiting)))]
                self._in_flight += len(starting)
            for load, index, journey in starting:
                self._step(load, index, journey, None)
            with self._turn:
                self._filling = False

    def _step(self, load: Load, index: int, journey: Journey, answer: Answer | None) -> None:
        """Give a journey its answer and send what it asks for next."""
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
            load.send(request, lambda arrived: self._step(load, index, journey, arrived))

    def _land(self, load: Load, index: int, end: Ended) -> None:
        with self._turn:
            self._in_flight -= 1
        self._note(load, index, end)
        self._fill()

    def _note(self, load: Load, index: int, end: Ended) -> None:
        with self._turn:
            load.ends[index] = end
            load.remaining -= 1
            landed = load.remaining == 0
        if landed:
            load.done.set()
