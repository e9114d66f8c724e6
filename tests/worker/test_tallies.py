"""Metrics that take in many observations at once say the same as if they had been told of each."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from rowferry_worker.monitoring.tallies import BulkHistogram

BOUNDS = (0.1, 0.5, 2.5)


@given(st.lists(st.sampled_from([0.0, 0.1, 0.10001, 0.5, 1.0, 2.5, 3.0, 1e9]) | st.floats(0, 5)), st.integers(1, 5))
def test_a_tally_says_what_single_observations_say(amounts: list[float], flushes_after: int) -> None:
    one, bulk = CollectorRegistry(), CollectorRegistry()
    told = Histogram("h", "", ["q"], buckets=BOUNDS, registry=one).labels("a")
    tally = BulkHistogram("h", "", ["q"], buckets=BOUNDS, registry=bulk).labels("a").new_tally()
    for number, amount in enumerate(amounts):
        told.observe(amount)
        tally.observe_all([amount])
        if number % flushes_after == 0:
            tally.flush()
    tally.flush()
    tally.flush()
    for bound in ("0.1", "0.5", "2.5", "+Inf"):
        labels = {"q": "a", "le": bound}
        assert bulk.get_sample_value("h_bucket", labels) == one.get_sample_value("h_bucket", labels)
    sums = [registry.get_sample_value("h_sum", {"q": "a"}) or 0.0 for registry in (one, bulk)]
    assert abs(sums[0] - sums[1]) <= 1e-6 * max(1.0, sums[0])
