"""A discrete-event simulation of workers that copy objects at the product's pace; the same seed gives the same run."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from rowferry.s3.retry import LONGEST_TURN
from rowferry_worker.pacing.pacer import Pacer
from support.pacing.servers import SMALL, Answer, Arrival, Latency, Server

CLAIM_SECONDS = 0.03
SLOTS = 16


@dataclass(slots=True)
class Batch:
    """What is left of a claimed batch."""

    to_start: int
    left: int
    """Objects whose copies have not ended; then those whose looks have not."""
    is_looked_at: bool = False


@dataclass(slots=True)
class Batches:
    """The claimed batches of one worker; each has `size` objects; 0: there is one, without an end."""

    size: int
    is_claiming: bool = False
    _claimed: list[Batch] = field(default_factory=list[Batch])

    def __post_init__(self) -> None:
        if not self.size:
            self._claimed.append(Batch(10**9, 10**9))

    def wants_batch(self, limit: int) -> bool:
        """Return whether another batch is to be claimed: less is left to copy than twice the limit."""
        left = sum(batch.left for batch in self._claimed if not batch.is_looked_at)
        return not self.is_claiming and len(self._claimed) < SLOTS and left < 2 * limit

    def claim(self) -> None:
        """Add a batch."""
        self.is_claiming = False
        self._claimed.append(Batch(self.size, self.size))

    def find_unstarted(self) -> list[Batch]:
        """Return the batches with objects that are to be copied or looked at: looks come first."""
        return sorted((batch for batch in self._claimed if batch.to_start), key=lambda one: not one.is_looked_at)

    def end_object(self, batch: Batch) -> None:
        """Note the end of a copy, or of a look."""
        batch.left -= 1
        if batch.left:
            return
        if batch.is_looked_at:
            self._claimed.remove(batch)
        else:
            batch.is_looked_at, batch.to_start, batch.left = True, self.size, self.size


BIN_SECONDS = 0.25
TRIES = 6
COPY, LOOK = "CopyObject", "HeadObject"


class SimulatedPacer(Pacer):
    """The product's pace in the simulation."""

    @property
    def value(self) -> int:
        return self.limit.value

    @property
    def looks(self) -> int | None:
        return self.limit.free if self.limit.cap < math.inf else None


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

    cpu_seconds: float = 0.0
    travel: Latency | None = None
    """How long requests take to their server, which decides when they come; None: no time."""
    batch_size: int = 0
    """Objects of a batch, which are looked at before it ends; 0: one batch without an end."""


class Try(NamedTuple):
    """One try to copy an object, or to look at it."""

    operation: str
    tried: int
    batch: Batch | None = None


@dataclass
class Worker:
    """One process: it starts objects while fewer are in flight than its controller allows."""

    simulation: Simulation
    number: int
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
        self.controller = SimulatedPacer(1, 4096, lambda: self.simulation.now)
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
                self._send(Try(LOOK, 1, batch))
                continue
            self._take_turn(Try(COPY, 1, batch))

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
        arrival = Arrival(sent, self.number, copy.operation)
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
            self._cpu_free_at = max(simulation.now, self._cpu_free_at) + self.load.cpu_seconds / 2
            if self._cpu_free_at > simulation.now:
                simulation.at(self._cpu_free_at, self._take_in, answer, started, copy)
                return
        self._take_in(answer, started, copy)

    def _take_in(self, answer: Answer, started: float, copy: Try) -> None:
        simulation, controller, operation = self.simulation, self.controller, copy.operation
        if answer.result == "ok":
            controller.note_success(operation, simulation.now - started, SMALL, self.in_flight)
            if operation == COPY:
                bin_ = int(simulation.now / BIN_SECONDS)
                self.done[bin_] = self.done.get(bin_, 0) + 1
            self._end(copy)
            return
        if answer.result == "throttled":
            bin_ = int(simulation.now / BIN_SECONDS)
            self.refused[bin_] = self.refused.get(bin_, 0) + 1
            controller.note_refused(operation)
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
