"""Simulated workers under the product's pace, with the heartbeat that tells them of one another."""

from collections.abc import Sequence

from support.pacing.servers import Server
from support.pacing.simulator import Load, Simulation, Worker

HEARTBEAT_SECONDS = 5.0


class SimulatedWorkers:
    """Workers that come and go in one simulation."""

    def __init__(self, server: Server, load: Load, seed: int) -> None:
        self.simulation = Simulation(server, seed)
        self.workers: list[Worker] = []
        self._load = load

    def start(self) -> None:
        """Start a worker."""
        worker = Worker(self.simulation, len(self.workers), self._load)
        self.workers.append(worker)
        self._beat(worker)
        self.simulation.at(self.simulation.now + 0.02, worker.start)

    def end(self, number: int) -> None:
        """Let a worker end."""
        self.workers[number].is_leaving = True

    def _beat(self, worker: Worker) -> None:
        """Tell a worker of the others, as the heartbeat does."""
        if worker.is_leaving:
            return
        paces = [one.controller for one in self.workers if not one.is_leaving]
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
    joins: Sequence[float] = (),
    leaves: Sequence[float] = (),
    seed: int = 1,
) -> list[Worker]:
    """Run workers and return them; `joins`: when others start, `leaves`: when the first ones end."""
    fleet = SimulatedWorkers(server, load or Load(), seed)
    for number in range(workers):
        fleet.simulation.at(0.001 * number, fleet.start)
    for moment in joins:
        fleet.simulation.at(moment, fleet.start)
    for number, moment in enumerate(leaves):
        fleet.simulation.at(moment, fleet.end, number)
    fleet.simulation.run(seconds)
    return fleet.workers
