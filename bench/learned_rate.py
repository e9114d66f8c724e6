"""How much of a server's bound real workers use, and how much it refuses them: buckets, fair and harsh, on the stub.

    python -m bench.learned_rate [--rates 30,300,1000,3500] [--workers 1,4] [--bursts 0.1,1,10] [--kinds fair,harsh]
        [--unlucky 0,0.05] [--seconds 30]

For each case: the share of the bound that is used and the share of requests that is refused from 5 s after the first
refusal on, the seconds from it to 0.9 of the bound, and the longest time without a request. A harsh server counts the
requests that it refuses as well; an unlucky one refuses a share at random. At the rate 0 there is no bound: then the
pace is held against that without refusals. The same shapes are simulated by `tests/support/pacing/shapes.py`.
"""

import argparse
import itertools
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import NamedTuple

from bench.environment import running_postgres
from bench.migration import WORKER, enqueue_rows, make_rows
from bench.stub_server import StubServer, build_stub

LATENCY_MS, SIGMA = 70, 0.3
FREE = 5000
"""More writes a second than a worker makes."""
STEP_SECONDS, LONGEST_SECONDS = 0.25, 120.0
SETTLED_SECONDS = 5.0
WINDOW = 8
"""Steps that show whether 0.9 is reached: two seconds."""


class Case(NamedTuple):
    """A server, and how many workers meet it."""

    kind: str
    burst: float
    """Seconds of the rate that are let through at once."""
    rate: float
    """Writes a second; 0: no bound."""
    workers: int
    unlucky: float
    """The share of writes that is refused at random."""

    @property
    def options(self) -> list[str]:
        """The options of the stub."""
        bound = [f"-rate={self.rate}", f"-burst={self.burst}", f"-unlucky={self.unlucky}"]
        return [f"-latency={LATENCY_MS}", f"-sigma={SIGMA}", *bound, *(["-harsh"] if self.kind == "harsh" else [])]


class Sample(NamedTuple):
    """What the server has answered until a moment."""

    at: float
    writes: int
    refusals: int


class Shape(NamedTuple):
    """How workers met a bound."""

    used: float
    refused: float
    reached_after: float | None
    """Seconds from the first refusal until 0.9 was used over two seconds; None: never."""
    silence: float


def describe(samples: list[Sample], rate: float) -> Shape:
    """Return what the samples of a run show from the first refusal on; from the first write where there was none."""
    begun = [number for number, sample in enumerate(samples) if sample.refusals or not samples[-1].refusals]
    first = next(number for number in begun if samples[number].refusals or samples[number].writes)
    since = samples[first].at
    settled = next(number for number, sample in enumerate(samples) if sample.at >= since + SETTLED_SECONDS)
    begin, end = samples[settled], samples[-1]
    writes, refusals = end.writes - begin.writes, end.refusals - begin.refusals
    used = writes / (end.at - begin.at) / rate
    windows = zip(samples[first:], samples[first + WINDOW :], strict=False)
    reached = (a.at - since for a, b in windows if b.writes - a.writes >= 0.9 * rate * (b.at - a.at))
    silence = longest = 0.0
    for before, after in itertools.pairwise(samples[first:]):
        is_silent = before.writes + before.refusals == after.writes + after.refusals
        silence = silence + after.at - before.at if is_silent else 0.0
        longest = max(longest, silence)
    return Shape(used, refusals / max(1, writes + refusals), next(reached, None), longest)


def measure(case: Case, seconds: float) -> list[Sample]:
    """Let workers migrate for so many seconds after the first refusal and return what the server has answered."""
    with ExitStack() as stack:
        server = stack.enter_context(StubServer(*case.options))
        make_rows(int((case.rate or FREE) * (case.burst + 1.3 * seconds + 10)))
        enqueue_rows(server.endpoint_url, server.endpoint_url, 100)
        processes = [
            subprocess.Popen(WORKER, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(case.workers)
        ]
        stack.callback(lambda: [process.wait() for process in processes])
        stack.callback(lambda: [process.terminate() for process in processes])  # they say that they have gone
        return take_samples(server, seconds, is_free=not (case.rate or case.unlucky))


def take_samples(server: StubServer, seconds: float, *, is_free: bool) -> list[Sample]:
    """Return what the server has answered every quarter of a second, until so long after it began to refuse.

    `is_free`: it never does, so that its first write counts.
    """
    samples: list[Sample] = []
    until = time.monotonic() + LONGEST_SECONDS
    has_begun = False
    while time.monotonic() < until:
        sample = read_sample(server)
        samples.append(sample)
        if not has_begun and (sample.refusals or (is_free and sample.writes)):
            has_begun, until = True, time.monotonic() + seconds
        time.sleep(STEP_SECONDS)
    assert samples[-1].writes, "no worker wrote anything"
    return samples


def read_sample(server: StubServer) -> Sample:
    """Return what the server has answered until now."""
    stats = server.read_stats()
    return Sample(stats["seconds"], stats["writes_accepted"]["all"], stats["writes_refused"]["all"])


def measure_free_pace(workers: int, seconds: float) -> float:
    """Return the writes per second of so many workers where nothing is refused."""
    samples = measure(Case("free", 0.0, 0.0, workers, 0.0), seconds)
    begin = next(sample for sample in samples if sample.writes)
    settled = next(sample for sample in samples if sample.at >= begin.at + SETTLED_SECONDS)
    return (samples[-1].writes - settled.writes) / (samples[-1].at - settled.at)


def show(case: Case, shape: Shape) -> None:
    """Print a line."""
    reached = "never" if shape.reached_after is None else f"{shape.reached_after:.2f} s"
    unlucky = f", {100 * case.unlucky:g} % at random" if case.unlucky else ""
    print(
        f"{case.kind:5} {case.burst:4g} s {case.rate:6g}/s x {case.workers:<2}{unlucky} used {shape.used:.3f}, "
        f"refused {100 * shape.refused:.1f} %, 0.9 after {reached}, silent for {shape.silence:.2f} s, "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main() -> None:
    """Read the options, measure, print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="30,300,1000,3500", help="Writes a second that are let through; 0: all")
    parser.add_argument("--workers", default="1,4", help="Worker processes")
    parser.add_argument("--bursts", default="0.1,1,10", help="Seconds of the rate that are let through at once")
    parser.add_argument("--kinds", default="fair,harsh", help="Whether refusals count as well: harsh")
    parser.add_argument("--unlucky", default="0", help="The shares of writes that are refused at random")
    parser.add_argument("--seconds", type=float, default=30.0, help="How long, from the first refusal on")
    options = parser.parse_args()
    if not build_stub():
        sys.exit("the stub takes go")
    named = options.bursts, options.rates, options.workers, options.unlucky
    numbers = [[float(word) for word in words.split(",")] for words in named]
    with running_postgres():
        free = {count: measure_free_pace(int(count), options.seconds) for count in numbers[2] if 0 in numbers[1]}
        for kind, burst, rate, count, share in itertools.product(options.kinds.split(","), *numbers):
            case = Case(kind, burst, rate, int(count), share)
            if not case.rate and not case.unlucky:
                continue
            show(case, describe(measure(case, options.seconds), case.rate or free[case.workers]))


if __name__ == "__main__":
    main()
