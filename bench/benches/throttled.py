"""A server that lets so many writes a second through: how much of that workers use, what is refused, and their shares.

And 5 % of all requests refused at random, without a bound.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product

from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.record import Figures, Record
from bench.timed import Launch, fill_queue, run_for
from bench.watch import Sample, Watch, between, curve

LATENCY_MS = 70
BOUNDS = (1000, 300)
WORKERS = (1, 4, 16)
START_SECONDS = 1.5
"""How long it takes, on two cores, until one more worker process has started."""
STEP_SECONDS = 5.0
"""Shares and refusals of so many seconds tell whether the workers have settled."""
REFUSED_SHARE = 0.05
MOST_PER_SECOND = 26_000


def run(record: Record) -> None:
    """Measure each bound with each number of workers, then the random refusals."""
    seconds = record.pick(60.0, short=10.0, reduced=30.0)
    cases = record.pick(tuple(product(BOUNDS, WORKERS)), short=((1000, 1), (300, 2)))
    record.settings |= {"latency_ms": LATENCY_MS, "seconds": seconds, "measured": "the second half"}
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        for bound, workers in cases:
            contestants = {name_of(bound, workers): partial(measure, record, bound, workers, seconds)}
            record.interleave(contestants, repetitions=1)
            tell(record, bound, workers)
        if record.pick(True, short=False, reduced=False):
            name = "1,000 in each second of the clock, 4 workers"
            record.interleave({name: partial(measure, record, 1000, 4, seconds, windows=1)}, repetitions=1)
            record.expect(f"share of the bound, {name}", record.median(name, "share_of_the_bound"))
        refuse_at_random(record)


def name_of(bound: int, workers: int) -> str:
    """Return the contestant's name."""
    return f"{bound:,} writes/s, {workers} worker{'s' * (workers > 1)}"


def tell(record: Record, bound: int, workers: int) -> None:
    """Hold a case against the targets."""
    name = name_of(bound, workers)
    record.expect(f"share of the bound, {name}", record.median(name, "share_of_the_bound"), at_least=0.95)
    record.expect(f"refused on top, {name}", record.median(name, "refused_percent"), at_most=2, unit=" %")
    if workers > 1:
        record.expect(f"largest share against the smallest, {name}", record.median(name, "uneven"), at_most=2, unit="x")
    record.expect(f"settled after, {name}", record.median(name, "settled_seconds"), unit=" s")


def measure(record: Record, bound: int, workers: int, seconds: float, windows: int = 0) -> Figures:
    """Let so many workers share the bound of one bucket; measured is the second half, once all have started."""
    seconds += START_SECONDS * workers
    launches = [Launch.named(f"worker-{number}") for number in range(1, workers + 1)]
    with fake_s3(LATENCY_MS) as server:
        watch = Watch(server)
        fill_queue(watch, int(seconds * bound * 1.5))
        server.configure("limits", writes_per_second=bound, windows=windows)
        samples = run_for(seconds, watch, launches).samples
    if not windows:
        record.series[name_of(bound, workers)] = curve(samples)
        record.series[f"{name_of(bound, workers)}, refused"] = curve_refused(samples)
    first = seconds - (seconds - START_SECONDS * workers) / 2
    begin, end = between(samples, first, seconds)
    accepted, shares = count_accepted(begin, end)
    return {
        "share_of_the_bound": accepted / (end.at - begin.at) / bound,
        "refused_percent": 100 * (end.refused - begin.refused) / max(accepted, 1),
        "refused_percent_of_all": 100 * samples[-1].refused / max(sum(samples[-1].accepted.values()), 1),
        "uneven": max(shares) / max(min(shares), 1) if len(shares) == workers else float(accepted),
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


def curve_refused(samples: Sequence[Sample]) -> list[list[float]]:
    """Return [seconds, refusals a second] for each second."""
    points: list[list[float]] = []
    begin = samples[0]
    for sample in samples:
        if sample.at - begin.at >= 1:
            points.append([sample.at, (sample.refused - begin.refused) / (sample.at - begin.at)])
            begin = sample
    return points


def refuse_at_random(record: Record) -> None:
    """Let one worker meet random refusals and none, in turn."""
    seconds = record.pick(30.0, short=4.0, reduced=14.0)

    def measure_free(share: float) -> Figures:
        with fake_s3(LATENCY_MS) as server:
            watch = Watch(server)
            fill_queue(watch, int(seconds * MOST_PER_SECOND))
            server.configure("limits", refused_share=share)
            return run_for(seconds, watch, [Launch()]).figures(seconds / 2, seconds)

    contestants = {"5 % refused at random": partial(measure_free, REFUSED_SHARE), "free": partial(measure_free, 0.0)}
    record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=2))
    what = "pace with 5 % refused at random, against the free pace"
    record.compare(what, "entries_per_second", *contestants, at_least=0.8)
