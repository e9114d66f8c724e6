"""Drives journeys: many at once, never more than the limit, all the batches of a process sharing it."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from threading import Event, Lock

from rowferry.errors import BucketNotFound, Cancelled, CredentialsUnavailable, ObjectError, SideFault, Withdrawn
from rowferry.s3.operations import Request
from rowferry.s3.responses import Answer
from rowferry_worker.monitoring import metrics
from rowferry_worker.objects.alarm import Alarm
from rowferry_worker.objects.concurrency import Limit
from rowferry_worker.objects.journey import Copied, Journey
from rowferry_worker.objects.patience import Patience, Reserve, Send
from rowferry_worker.objects.traffic import observe_try

_log = logging.getLogger(__name__)

Ended = Copied | ObjectError
TAKES_BACK = "AbortMultipartUpload"
"""The operation that is let through when all else is given up."""
LOST = "the batch was lost or given back meanwhile"

WHOLE_SIDE = (SideFault, CredentialsUnavailable, BucketNotFound)
"""Errors that every object of the side would meet."""
FEW = 3
"""As many journeys of a load may meet such an error: then no more of them begin."""


@dataclass(slots=True)
class Load:
    """The journeys of one batch, and how each ended."""

    send: Send
    reserve: Reserve | None
    alarm: Alarm
    ends: list[Ended | None]
    remaining: int
    side_faults: int = 0
    """How many journeys have met the fault of a whole side."""
    done: Event = field(default_factory=Event)
    fault: Exception | None = None
    """A mistake of our own in a journey: the batch must not trust its results."""
    is_recalled: bool = False
    """The batch is lost or given back: nothing more is sent for it, but for what takes back an upload."""
    requests: dict[int, Request] = field(default_factory=dict[int, Request])
    """The request that each journey waits for, by the journey's place."""

    def under_way(self) -> list[Request]:
        """Return the requests that journeys wait for."""
        return list(self.requests.values())

    def dispatch(self, request: Request, on_answer: Callable[[Answer], None]) -> None:
        """Send a request, unless the batch is not ours any more: Cancelled is its answer then."""
        if self.is_recalled and request.operation != TAKES_BACK:
            self.alarm.call_later(timedelta(0), partial(on_answer, Answer(0, error=Cancelled("Cancelled", LOST))))
        else:
            self.send(request, on_answer)

    def wait(self, timeout: timedelta) -> bool:
        """Return whether all journeys have ended, after at most `timeout`. Raises `fault` where there is one."""
        if not self.done.wait(timeout.total_seconds()):
            return False
        if self.fault is not None:
            raise self.fault
        return True


class Flight:
    """At most as many journeys are under way as the limit says; the rest wait in the order of their launch."""

    def __init__(self, most: int, least: int = 1, *, within: "Flight | None" = None) -> None:
        """`most`, `least`: the bounds of the objects in flight; `within`: whose steps and alarm this one's are, too."""
        self._within = within
        self.limit = Limit(least, most)
        observe = partial(observe_try, self.limit, show_limit=within is None)
        self.patience = Patience(observe, within.patience.alarm if within else None)
        self.stepped_at = time.monotonic()
        """When a journey last went a step, by time.monotonic()."""
        self._in_flight = 0
        self._waiting: deque[_Passenger] = deque()
        self._filling = False
        self._turn = Lock()

    def note_step(self) -> None:
        """Note that a journey goes a step now: the worker is alive."""
        self.stepped_at = time.monotonic()
        if self._within is not None:
            self._within.note_step()

    def launch(self, send: Send, journeys: Sequence[Journey], reserve: Reserve | None = None) -> Load:
        """Put journeys in the queue and return at once with their load; `reserve` paces their requests."""
        load = Load(send, reserve, self.patience.alarm, [None] * len(journeys), len(journeys))
        if not journeys:
            load.done.set()
        with self._turn:
            self._waiting.extend(_Passenger(self, load, index, journey) for index, journey in enumerate(journeys))
        self._fill()
        return load

    def withdraw(self, load: Load) -> None:
        """End the journeys of a load that have not begun, as Withdrawn; those under way go on."""
        with self._turn:
            withdrawn = [waiting for waiting in self._waiting if waiting.load is load]
            self._waiting = deque(waiting for waiting in self._waiting if waiting.load is not load)
        for passenger in withdrawn:
            passenger.journey.close()
            with self._turn:
                passenger.note(Withdrawn("Withdrawn", "its turn did not come"))

    def land(self, passenger: "_Passenger", end: Ended) -> None:
        """Note how a journey has ended, and begin others in its place."""
        with self._turn:
            self._in_flight -= 1
            passenger.note(end)
        if passenger.load.side_faults == FEW:
            self.withdraw(passenger.load)
        metrics.objects_in_flight.dec()
        metrics.copy_seconds.observe(time.monotonic() - passenger.began)
        self._fill()

    def top_up(self) -> None:
        """Begin more journeys where the limit has risen; the look beforehand needs no lock, since others follow."""
        if self._waiting and self._in_flight < self.limit.value and not self._filling:
            self._fill()

    def _fill(self) -> None:
        """Begin waiting journeys up to the limit; one thread at a time does it for all.

        One that ends at once, without a request, comes back here from within: the outer call then goes on for it.
        """
        with self._turn:
            if self._filling:
                return
            self._filling = True
        while starting := self._choose():
            metrics.objects_in_flight.inc(len(starting))
            for passenger in starting:
                passenger.began = time.monotonic()
                passenger.step(None)

    def _choose(self) -> "list[_Passenger]":
        """Take out those for whom there is room; when there are none, filling is over."""
        with self._turn:
            room = self.limit.value - self._in_flight
            if room <= 0 or not self._waiting:
                self._filling = False
                return []
            starting = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
            self._in_flight += len(starting)
            return starting


class _Passenger:
    """One journey on its way: it takes each answer to the journey, and sends what that asks for next."""

    __slots__ = ("began", "flight", "index", "journey", "load")

    def __init__(self, flight: Flight, load: Load, index: int, journey: Journey) -> None:
        self.flight = flight
        self.load = load
        self.index = index
        self.journey = journey
        self.began = 0.0
        """By time.monotonic()."""

    def step(self, answer: Answer | None) -> None:
        """Give the journey its answer, None to begin with, and send what it asks for next."""
        flight, load = self.flight, self.load
        flight.note_step()
        if answer is not None and answer.error is not None and (asked := load.requests.get(self.index)):
            answer.error.side, answer.error.operation = asked.side, asked.operation
        try:
            request = next(self.journey) if answer is None else self.journey.send(answer)
            load.requests[self.index] = request
            flight.patience.send(load.dispatch, request, self.step, reserve=load.reserve)
        except StopIteration as stop:
            flight.land(self, stop.value)
        except ObjectError as error:
            # Its frames would hold what was read, for as long as the batch is in hand.
            error.__traceback__ = error.__context__ = error.__cause__ = None
            flight.land(self, error)
        except Exception as fault:  # noqa: BLE001 - it belongs to the batch, not to the event-loop thread
            load.fault = fault
            flight.land(self, Cancelled("Fault", str(fault)))
        else:
            flight.top_up()

    def note(self, end: Ended) -> None:
        """Write the end down; the caller holds the flight's turn."""
        load = self.load
        load.ends[self.index] = end
        load.requests.pop(self.index, None)
        load.remaining -= 1
        load.side_faults += isinstance(end, WHOLE_SIDE)
        if load.remaining == 0:
            load.done.set()
