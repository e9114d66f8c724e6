"""How workers meet bounds of every shape in the simulator: the table of docs/internals/pacing.md.

python -m support.pacing.shapes [SHAPE ...]
"""

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from support.pacing.servers import Bound, Bucket, Free, Server, Sliding, Throttling, Unlucky, constant, lognormal
from support.pacing.simulator import BIN_SECONDS, Load, Simulation, Worker

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


SHAPES: dict[str, Callable[[float], Bound]] = {
    "bucket of 0.1 s": lambda rate: Bucket(rate, 0.1),
    "bucket of 1 s": lambda rate: Bucket(rate, 1.0),
    "bucket of 10 s": lambda rate: Bucket(rate, 10.0),
    "harsh bucket of 0.1 s": lambda rate: Bucket(rate, 0.1, counts_all=True),
    "harsh bucket of 1 s": lambda rate: Bucket(rate, 1.0, counts_all=True),
    "harsh bucket of 10 s": lambda rate: Bucket(rate, 10.0, counts_all=True),
    "seconds of the clock": lambda rate: Bucket(rate, fixed_window=True),
    "sliding second": Sliding,
    "harsh sliding second": lambda rate: Sliding(rate, counts_all=True),
}
"""A harsh one counts the requests that it refuses as well."""
RATES, WORKERS = (30, 300, 1000, 3500), (1, 4, 16)
SECONDS, SETTLED_BINS = 45.0, 20


class Met(NamedTuple):
    """How workers met a bound, from the first refusal on."""

    used: float
    """The share of the bound, from 5 s after the first refusal on, and ..."""
    refused: float
    """... the share of requests that was refused then."""
    refused_in_all: float
    """The same from the start on."""


NEAR = Load(cpu_seconds=0.0001)
"""The server decides at once, and there is no end of objects."""
FAR = Load(cpu_seconds=0.0003, travel=lognormal(0.07, 0.3), batch_size=100)
"""As real workers meet the stub of the benches: it decides when a request has come, and each batch has an end."""


def make_server(bound: Callable[[], Bound], load: Load, *, unlucky: float = 0.0, scope: str = "all") -> Server:
    """Return a server with a bound; `unlucky`: the share that is refused at random as well."""
    is_far = load.travel is not None
    latency = constant(0.0005) if is_far else lognormal(0.07, 0.3)
    refusal_seconds = 0.0005 if is_far else 0.01
    server: Server = Throttling(Free(latency), bound, scope, refusal_seconds=refusal_seconds)
    return Unlucky(server, unlucky, refusal_seconds) if unlucky else server


def measure(
    shape: str, rate: float, workers: int, *, unlucky: float = 0.0, scope: str = "all", load: Load = FAR, seed: int = 1
) -> Met:
    """Let so many workers run at a bound; `unlucky`: the share that is refused at random as well."""
    server = make_server(lambda: SHAPES[shape](rate), load, unlucky=unlucky, scope=scope)
    fleet = run_fleet(server, workers, seconds=SECONDS, load=load, seed=seed)
    return describe(fleet, rate)


def describe(fleet: list[Worker], rate: float) -> Met:
    """Return how a fleet met a bound."""
    bins = range(int(SECONDS / BIN_SECONDS))
    done = [sum(worker.done.get(number, 0) for worker in fleet) for number in bins]
    refused = [sum(worker.refused.get(number, 0) for worker in fleet) for number in bins]
    settled = slice(next((number for number in bins if refused[number]), 0) + SETTLED_BINS, None)
    let_through, lost = sum(done[settled]), sum(refused[settled])
    used = let_through / (len(done[settled]) * BIN_SECONDS) / rate
    return Met(used, lost / max(1, let_through + lost), sum(refused) / max(1, sum(done) + sum(refused)))


def main() -> None:
    """Print a line for each case."""
    for shape, rate, workers in itertools.product(sys.argv[1:] or SHAPES, RATES, WORKERS):
        met = measure(shape, rate, workers)
        figures = f"{met.used:.2f} | {100 * met.refused:.1f} % | {100 * met.refused_in_all:.1f} %"
        sys.stdout.write(f"| {shape} | {rate} | {workers} | {figures} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
