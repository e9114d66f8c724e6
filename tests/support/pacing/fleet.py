"""Simulated workers under the product's pace, with the heartbeat that tells them of one another."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rowferry_worker.pacing.pacer import Pacer
from support.pacing.servers import Server
from support.pacing.simulator import Controller, Load, Simulation, Worker

HEARTBEAT_SECONDS = 5.0
KEY = "CopyObject"


class SimulatedPacer(Pacer):
    """The product's pace as a controller of the simulation."""

    @property
    def value(self) -> int:
        return self.limit.value

    @property
    def looks(self) -> int | None:
        return self.limit.free if self.limit.cap < math.inf else None

    def note_failed(self, key: str) -> None:
        self.note_failure()

    def note_delay(self, seconds: float) -> None:
        """As timers of an event loop would tell it."""
        self.limit.delay.seconds += 0.1 * (seconds - self.limit.delay.seconds)


@dataclass
class FixedLimit:
    """A limit that never moves, at no bound of requests: what the product's pace is held against."""

    value: int
    looks: int | None = None

    def reserve(self, key: str) -> float:
        return 0.0

    def note_success(self, key: str, seconds: float, size_bytes: int, in_flight: int) -> None:
        """Change nothing."""

    def note_refused(self, key: str) -> None:
        """Change nothing."""

    def note_failed(self, key: str) -> None:
        """Change nothing."""

    def note_delay(self, seconds: float) -> None:
        """Change nothing."""


def product(simulation: Simulation) -> SimulatedPacer:
    return SimulatedPacer(1, 4096, lambda: simulation.now)


class SimulatedWorkers:
    """Workers that come and go in one simulation."""

    def __init__(self, server: Server, load: Load, controller: Callable[[Simulation], Controller], seed: int) -> None:
        self.simulation = Simulation(server, seed)
        self.workers: list[Worker] = []
        self._load, self._controller = load, controller

    def start(self) -> None:
        """Start a worker."""
        worker = Worker(self.simulation, len(self.workers), self._controller(self.simulation), self._load)
        self.workers.append(worker)
        self._beat(worker)
        self.simulation.at(self.simulation.now + 0.02, worker.start)

    def end(self, number: int) -> None:
        """Let a worker end."""
        self.workers[number].is_leaving = True

    def _beat(self, worker: Worker) -> None:
        """Tell a worker of the others, as the heartbeat does."""
        if worker.is_leaving or not isinstance(worker.controller, Pacer):
            return
        paces = [one.controller for one in self.workers if isinstance(one.controller, Pacer) and not one.is_leaving]
        through: dict[str, list[float]] = {}
        for pace in paces:
            for key, rate in pace.rates.items():
                if rate.is_held_back:
                    through.setdefault(key, []).append(rate.through)
        worker.controller.hear_fleet(len(paces), {key: (sum(rates), len(rates)) for key, rates in through.items()})
        self.simulation.at(self.simulation.now + HEARTBEAT_SECONDS, self._beat, worker)


def run_fleet(
    server: Server,
    workers: int = 1,
    *,
    seconds: float = 60.0,
    load: Load | None = None,
    controller: Callable[[Simulation], Controller] = product,
    joins: Sequence[float] = (),
    leaves: Sequence[float] = (),
    seed: int = 1,
) -> list[Worker]:
    """Run workers and return them; `joins`: when others start, `leaves`: when the first ones end."""
    fleet = SimulatedWorkers(server, load or Load(), controller, seed)
    for number in range(workers):
        fleet.simulation.at(0.001 * number, fleet.start)
    for moment in joins:
        fleet.simulation.at(moment, fleet.start)
    for number, moment in enumerate(leaves):
        fleet.simulation.at(moment, fleet.end, number)
    fleet.simulation.run(seconds)
    return fleet.workers
