"""A server that lets so many writes a second through: how much of that workers use, what is refused, and their shares.

And 5 % of all requests refused at random, without a bound.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product

from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.record import Figures, Record
from bench.timed import Sample, between, fill_queue, rate, run_for

LATENCY_MS = 70
BOUNDS = (1000, 300)
WORKERS = (1, 4, 16)
START_SECONDS = 1.5
"""How long it takes, on two cores, until one more worker process has started."""
STEP_SECONDS = 5.0
"""Shares and refusals of so many seconds tell whether the workers have settled."""
REFUSED_SHARE = 0.05
MOST_PER_SECOND = 26_000
"""More than a worker reaches."""


def run(record: Record) -> None:
    """Measure each bound with each number of workers, then the random refusals."""
    seconds = record.pick(60.0, short=10.0, reduced=30.0)
    cases = record.pick(tuple(product(BOUNDS, WORKERS)), short=((1000, 1), (300, 2)))
    record.settings |= {"latency_ms": LATENCY_MS, "seconds": seconds, "measured": "the second half"}
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        for bound, workers in cases:
            name = f"{bound:,} writes/s, {workers} worker{'s' * (workers > 1)}"
            record.interleave({name: partial(measure, bound, workers, seconds)}, repetitions=1)
        free = record.pick(30.0, short=6.0, reduced=14.0)
        shares = {"5 % refused at random": REFUSED_SHARE, "free": 0.0}
        contestants = {name: partial(measure_free, share, free) for name, share in shares.items()}
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=2))


def measure(bound: int, workers: int, seconds: float) -> Figures:
    """Let so many workers share the bound of one bucket; measured is the second half, once all have started.

    Each has an access key of its own, by which the server tells it from the others.
    """
    first = seconds / 2 + START_SECONDS * workers
    seconds += START_SECONDS * workers
    named = [{"ROWFERRY_PRODUCTION_ACCESS_KEY_ID": f"worker-{number}"} for number in range(1, workers + 1)]
    with fake_s3(LATENCY_MS) as server:
        fill_queue(server, int(seconds * bound * 1.5))
        server.configure("limits", writes_per_second=bound)
        samples = run_for(seconds, server, named)
    begin, end = between(samples, first, seconds)
    accepted, shares = count_accepted(begin, end)
    return {
        "share_of_the_bound": accepted / (end.at - begin.at) / bound,
        "refused_on_top_percent": 100 * (end.refused - begin.refused) / max(accepted, 1),
        "largest_share_against_smallest": max(shares) / max(min(shares), 1) if len(shares) == workers else accepted,
        "settled_seconds": find_settled(samples, bound),
    }


def count_accepted(begin: Sample, end: Sample) -> tuple[int, list[int]]:
    """Return the writes that were let through between two samples, in all and of each worker."""
    shares = [number - begin.accepted.get(account, 0) for account, number in end.accepted.items()]
    return sum(shares), shares


def find_settled(samples: Sequence[Sample], bound: int) -> float:
    """Return the seconds from the first object until 0.9 of the bound is used and at most 5 % are refused on top."""
    first_at = next((sample.at for sample in samples if sample.objects), samples[0].at)
    for begin in samples:
        later = [sample for sample in samples if sample.at >= begin.at + STEP_SECONDS]
        if begin.at < first_at or not later:
            continue
        accepted, _ = count_accepted(begin, later[0])
        used = accepted / (later[0].at - begin.at)
        if used >= 0.9 * bound and later[0].refused - begin.refused <= 0.05 * accepted:
            return begin.at - first_at
    return samples[-1].at - first_at


def measure_free(share: float, seconds: float) -> Figures:
    """Let one worker meet random refusals of this share; measured is the second half."""
    with fake_s3(LATENCY_MS) as server:
        fill_queue(server, int(seconds * MOST_PER_SECOND))
        server.configure("limits", refused_share=share)
        samples = run_for(seconds, server, [{}])
    return {"entries_per_second": rate(samples, seconds / 2, seconds)}
