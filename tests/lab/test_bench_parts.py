"""The instruments of the benches tell what is so: CPU, memory, paces, flat curves and exit statuses."""

import pytest

from bench.benches.outage import find_regained
from bench.curves import Sample as Look
from bench.curves import judge, tell
from bench.timed import Sample, rate

pytestmark = pytest.mark.soak


def make_sample(at: float, objects: int) -> Sample:
    return Sample(at=at, objects=objects, accepted={"one": objects}, refused=0)


def test_a_pace_is_that_between_the_nearest_samples() -> None:
    samples = [make_sample(at / 4, 10 * at) for at in range(41)]
    assert rate(samples, 2.1, 9.9) == pytest.approx(40)
    with pytest.raises(AssertionError, match="no samples"):
        rate(samples[:1], 2, 10)


def test_the_pace_is_regained_when_it_lasts_for_two_seconds() -> None:
    paces = [0] * 20 + [100] * 2 + [0] * 10 + [95] * 40
    objects = [sum(paces[:number]) for number in range(len(paces))]
    samples = [make_sample(at / 4, number) for at, number in enumerate(objects)]
    assert find_regained(samples, 5.0, 0.9 * 100 * 4) == pytest.approx(8.0, abs=0.25)
    assert find_regained(samples, 5.0, 1000.0) == samples[-1].at


def test_a_curve_that_rises_is_told_from_a_flat_one() -> None:
    samples = [Look(minute, minute, 5, 1000, *[1.0] * 9) for minute in range(1, 10)]
    assert judge(samples)["claim_cpu_ms"] == (2, 8, 4)
    told = {line.split()[0]: line.split("x   ")[1] for line in tell(samples)}
    assert told["claim_cpu_ms"] == "NOT FLAT"
    assert told["batch_cpu_ms"] == "flat"
    assert told["queue_mb"] == "grows with the work"


def test_a_pace_that_falls_is_not_flat() -> None:
    samples = [Look(minute, 1, 5, 1000 / minute, *[1.0] * 9) for minute in range(1, 10)]
    assert judge(samples)["entries_per_second"][2] == 4
