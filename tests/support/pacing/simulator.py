"""A discrete-event simulation of workers that copy objects under a controller; the same seed gives the same run."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple, Protocol

from rowferry.s3.retry import LONGEST_TURN
from support.pacing.batches import CLAIM_SECONDS, Batch, Batches
from support.pacing.servers import LARGE, SMALL, Answer, Arrival, Latency, Server

BIN_SECONDS = 0.25
TRIES = 6
COPY, LOOK = "CopyObject", "HeadObject"


class Controller(Protocol):
    """What decides how many objects a worker has in flight, and when each of its requests goes."""

    @property
    def value(self) -> int:
        """Objects that may be in flight now."""
        ...

    @property
    def looks(self) -> int | None:
        """Looks that may be in flight besides; None: they count as copies do."""
        ...

    def reserve(self, key: str) -> float:
        """Take a request's turn; return the seconds to wait for it."""
        ...

    def note_success(self, key: str, seconds: float, size_bytes: int, in_flight: int) -> object:
        """Take a success in."""
        ...

    def note_refused(self, key: str) -> object:
        """Take a refusal for the rate in."""
        ...

    def note_failed(self, key: str) -> object:
        """Take any other failure in."""
        ...

    def note_delay(self, seconds: float) -> object:
        """Take in how long a response has waited for this worker's CPU."""
        ...


class Simulation:
    """The clock and what is due."""

    def __init__(self, server: Server, seed: int = 1) -> None:
        self.now = 0.0
        self.server = server
        self.dice = Random(seed)
        self._due: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0

    def at(self, when: float, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function at a moment."""
        self._number += 1
        heapq.heappush(self._due, (when, self._number, function, arguments))

    def run(self, until: float) -> None:
        """Let all happen that is due before `until`."""
        due = self._due
        while due and due[0][0] < until:
            self.now, _, function, arguments = heapq.heappop(due)
            function(*arguments)
        self.now = until


@dataclass
class Load:
    """What objects a worker copies."""

    share_large: float = 0.0
    cpu_seconds: float = 0.0
    travel: Latency | None = None
    """How long requests take to their server, which decides when they come; None: no time."""
    batch_size: int = 0
    """Objects of a batch, which are looked at before it ends; 0: one batch without an end."""


class Try(NamedTuple):
    """One try to copy an object, or to look at it."""

    operation: str
    size_bytes: int
    tried: int
    batch: Batch | None = None


@dataclass
class Worker:
    """One process: it starts objects while fewer are in flight than its controller allows."""

    simulation: Simulation
    number: int
    controller: Controller
    load: Load = field(default_factory=Load)
    is_leaving: bool = False
    in_flight: int = 0
    looks: int = 0
    """Those of them that are looked at once more."""
    done: dict[int, int] = field(default_factory=dict[int, int])
    """Objects copied, by the number of the bin of time."""
    refused: dict[int, int] = field(default_factory=dict[int, int])
    limits: dict[int, int] = field(default_factory=dict[int, int])
    _cpu_free_at: float = 0.0
    _batches: Batches = field(init=False)

    def __post_init__(self) -> None:
        self._batches = Batches(self.load.batch_size)

    def start(self) -> None:
        """Start objects up to the limit, and look again in a while."""
        self._start_objects()
        if not self.is_leaving:
            self.limits[int(self.simulation.now / BIN_SECONDS)] = self.controller.value
            self.simulation.at(self.simulation.now + 0.05, self.start)

    def _start_objects(self) -> None:
        if self._batches.wants_batch(self.controller.value):
            self._batches.is_claiming = True
            self.simulation.at(self.simulation.now + CLAIM_SECONDS, self._claim)
        while not self.is_leaving and (batch := self._find_next()):
            self.in_flight += 1
            if batch.is_looked_at:
                self.looks += 1
                self._send(Try(LOOK, SMALL, 1, batch))
                continue
            dice = self.simulation.dice
            size = LARGE if self.load.share_large and dice.random() < self.load.share_large else SMALL
            self._take_turn(Try(COPY, size, 1, batch))

    def _find_next(self) -> Batch | None:
        """Return the batch whose next object may be copied or looked at now."""
        for batch in self._batches.find_unstarted():
            limit, count, looks = self.controller.value, self.in_flight, self.controller.looks
            if looks is not None:
                limit, count = (looks, self.looks) if batch.is_looked_at else (limit, count - self.looks)
            if count < limit:
                batch.to_start -= 1
                return batch
        return None

    def _claim(self) -> None:
        self._batches.claim()
        self._start_objects()

    def _take_turn(self, copy: Try) -> None:
        wait = self.controller.reserve(COPY)
        if wait > LONGEST_TURN.total_seconds():
            self.simulation.at(self.simulation.now + LONGEST_TURN.total_seconds(), self._take_turn, copy)
        elif wait > 0:
            self.simulation.at(self.simulation.now + wait, self._send, copy)
        else:
            self._send(copy)

    def _send(self, copy: Try) -> None:
        simulation = self.simulation
        started = sent = simulation.now
        if self.load.cpu_seconds:
            sent = self._cpu_free_at = max(started, self._cpu_free_at) + self.load.cpu_seconds / 2
        arrival = Arrival(sent, self.number, copy.operation, copy.size_bytes)
        if self.load.travel is None:
            self._arrive(arrival, started, copy)
        else:
            arrival = arrival._replace(at=sent + self.load.travel(simulation.dice))
            simulation.at(arrival.at, self._arrive, arrival, started, copy)

    def _arrive(self, arrival: Arrival, started: float, copy: Try) -> None:
        answer = self.simulation.server.answer(arrival, self.simulation.dice)
        self.simulation.at(arrival.at + answer.seconds, self._receive, answer, started, copy)

    def _receive(self, answer: Answer, started: float, copy: Try) -> None:
        simulation = self.simulation
        if self.load.cpu_seconds:
            self.controller.note_delay(max(0.0, self._cpu_free_at - simulation.now))
            self._cpu_free_at = max(simulation.now, self._cpu_free_at) + self.load.cpu_seconds / 2
            if self._cpu_free_at > simulation.now:
                simulation.at(self._cpu_free_at, self._take_in, answer, started, copy)
                return
        self._take_in(answer, started, copy)

    def _take_in(self, answer: Answer, started: float, copy: Try) -> None:
        simulation, controller, operation = self.simulation, self.controller, copy.operation
        if answer.result == "ok":
            controller.note_success(operation, simulation.now - started, copy.size_bytes, self.in_flight)
            if operation == COPY:
                bin_ = int(simulation.now / BIN_SECONDS)
                self.done[bin_] = self.done.get(bin_, 0) + 1
            self._end(copy)
            return
        if answer.result == "throttled":
            bin_ = int(simulation.now / BIN_SECONDS)
            self.refused[bin_] = self.refused.get(bin_, 0) + 1
            controller.note_refused(operation)
        else:
            controller.note_failed(operation)
        if copy.tried == TRIES:
            self._end(copy)
            return
        pause = simulation.dice.random() * min(5.0, 0.1 * 2**copy.tried)
        again = self._send if operation == LOOK else self._take_turn
        simulation.at(simulation.now + pause, again, copy._replace(tried=copy.tried + 1))

    def _end(self, copy: Try) -> None:
        self.in_flight -= 1
        self.looks -= copy.operation == LOOK
        assert copy.batch is not None
        self._batches.end_object(copy.batch)
        self._start_objects()

    def rate(self, since: float, until: float) -> float:
        """Return the objects copied per second in a span of time."""
        return self._sum(self.done, since, until) / (until - since)

    def refusals(self, since: float, until: float) -> float:
        """Return the refusals in a span of time."""
        return self._sum(self.refused, since, until)

    def lowest_limit(self, since: float, until: float) -> int:
        """Return the lowest limit in a span of time."""
        return min(limit for bin_, limit in self.limits.items() if since <= bin_ * BIN_SECONDS < until)

    @staticmethod
    def _sum(counts: dict[int, int], since: float, until: float) -> int:
        return sum(counts.get(bin_, 0) for bin_ in range(round(since / BIN_SECONDS), round(until / BIN_SECONDS)))
