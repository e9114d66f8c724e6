"""A server that goes away for 3 s and for 60 s: how long after its return the pace is what it was before."""

from collections.abc import Sequence
from functools import partial

from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.record import Figures, Record
from bench.timed import Event, Sample, fill_queue, rate, run_for

LATENCY_MS = 300
KINDS = {"refuses connections": 0, "says nothing": 1}
STEP_SECONDS = 2.0
"""The pace is that of so many seconds."""
REGAINED = 0.9
MOST_PER_SECOND = 26_000
"""More than a worker reaches."""


def run(record: Record) -> None:
    """Measure each length of an outage."""
    before, after = record.pick(30.0, short=6.0, reduced=15.0), record.pick(60.0, short=8.0, reduced=25.0)
    record.settings |= {"latency_ms": LATENCY_MS, "seconds_before": before, "seconds_after": after}
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        for length in record.pick((3, 60), short=(3,)):
            for kind, silent in KINDS.items():
                name = f"{length} s, {kind}"
                record.interleave({name: partial(measure, length, silent, before, after)}, repetitions=1)


def measure(length: int, silent: int, before: float, after: float) -> Figures:
    """Let one worker meet an outage of so many seconds; `silent` 1: connections stay, and nothing is answered."""
    seconds = before + length + after
    with fake_s3(LATENCY_MS) as server:
        fill_queue(server, int((before + after) * MOST_PER_SECOND))
        outage = Event(before, lambda: server.configure("outage", seconds=length, silent=silent))
        samples = run_for(seconds, server, [{}], [outage])
    pace = rate(samples, before - min(before / 2, 8.0), before - 0.5)
    returned = before + length
    return {
        "entries_per_second_before": pace,
        "entries_per_second_at_the_end": rate(samples, seconds - after / 4, seconds),
        "seconds_to_regain_90_percent": find_regained(samples, returned, REGAINED * pace) - returned,
    }


def find_regained(samples: Sequence[Sample], returned: float, pace: float) -> float:
    """Return when the pace was first reached again, over STEP_SECONDS; the end of the run where it was not."""
    for begin in samples:
        if returned <= begin.at <= samples[-1].at - STEP_SECONDS:
            end = next(sample for sample in samples if sample.at >= begin.at + STEP_SECONDS)
            if (end.objects - begin.objects) / (end.at - begin.at) >= pace:
                return begin.at
    return samples[-1].at
