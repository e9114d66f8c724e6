"""How much of a server's bound real workers use, and how much it refuses them: buckets, fair and harsh, on the stub.

    python -m bench.learned_rate [--rates 30,300,1000,3500] [--workers 1,4] [--bursts 0.1,1,10] [--seconds 30]

For each case: the share of the bound that is used and the share of requests that is refused from 5 s after the first
refusal on, the seconds from it to 0.9 of the bound, and the longest time without a request. A harsh server counts the
requests that it refuses as well. The same shapes are simulated by `tests/support/pacing/shapes.py`.
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
STEP_SECONDS = 0.25
SETTLED_SECONDS = 5.0
WINDOW = 8
"""Steps that show whether 0.9 is reached: two seconds."""


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
    """Return what the samples of a run show from the first refusal on."""
    first = next(number for number, sample in enumerate(samples) if sample.refusals)
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


def measure(rate: float, workers: int, burst: float, seconds: float, *, is_harsh: bool) -> Shape:
    """Let workers migrate for so many seconds and return what the server saw."""
    options = [f"-latency={LATENCY_MS}", f"-sigma={SIGMA}", f"-rate={rate}", f"-burst={burst}"]
    options += ["-harsh"] if is_harsh else []
    with ExitStack() as stack:
        server = stack.enter_context(StubServer(*options))
        make_rows(int(rate * (burst + 1.3 * seconds + 10)))
        enqueue_rows(server.endpoint_url, server.endpoint_url, 100)
        processes = [
            subprocess.Popen(WORKER, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(workers)
        ]
        stack.callback(lambda: [process.wait() for process in processes])
        stack.callback(lambda: [process.terminate() for process in processes])  # they say that they have gone
        return describe(take_samples(server, seconds), rate)


def take_samples(server: StubServer, seconds: float) -> list[Sample]:
    """Return what the server has answered every quarter of a second, until so long after its first refusal."""
    samples: list[Sample] = []
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        stats = server.read_stats()
        samples.append(Sample(time.monotonic(), stats["writes"], stats["refusals"]))
        if stats["refusals"] and not samples[max(0, len(samples) - 2)].refusals:
            until = time.monotonic() + seconds
        time.sleep(STEP_SECONDS)
    return samples


def main() -> None:
    """Read the options, measure, print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="30,300,1000,3500")
    parser.add_argument("--workers", default="1,4")
    parser.add_argument("--bursts", default="0.1,1,10")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    if not build_stub():
        sys.exit("the stub takes go")
    rates, bursts = ([float(word) for word in words.split(",")] for words in (options.rates, options.bursts))
    workers = [int(word) for word in options.workers.split(",")]
    with running_postgres():
        for is_harsh, burst, rate, count in itertools.product((False, True), bursts, rates, workers):
            shape = measure(rate, count, burst, options.seconds, is_harsh=is_harsh)
            reached = "never" if shape.reached_after is None else f"{shape.reached_after:.2f} s"
            print(
                f"{'harsh' if is_harsh else 'fair':5} {burst:4g} s {rate:6g}/s x {count:<2} used {shape.used:.3f}, "
                f"refused {100 * shape.refused:.1f} %, 0.9 after {reached}, silent for {shape.silence:.2f} s, "
                f"load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
