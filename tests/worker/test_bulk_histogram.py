"""A histogram that takes in many observations at once says the same as if it had been told of each."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from rowferry_worker.monitoring.bulk_histogram import BulkHistogram

BOUNDS = (0.1, 0.5, 2.5)
AMOUNTS = st.lists(st.sampled_from([0.0, 0.1, 0.10001, 0.5, 1.0, 2.5, 3.0, 1e9]) | st.floats(0, 5))


@given(AMOUNTS, AMOUNTS)
def test_observations_together_say_what_single_ones_say(first: list[float], second: list[float]) -> None:
    one, bulk = CollectorRegistry(), CollectorRegistry()
    told = Histogram("h", "", ["q"], buckets=BOUNDS, registry=one).labels("a")
    together = BulkHistogram("h", "", ["q"], buckets=BOUNDS, registry=bulk).labels("a")
    for amounts in (first, second):
        together.observe_all(amounts)
        for amount in amounts:
            told.observe(amount)
    for bound in ("0.1", "0.5", "2.5", "+Inf"):
        labels = {"q": "a", "le": bound}
        assert bulk.get_sample_value("h_bucket", labels) == one.get_sample_value("h_bucket", labels)
    sums = [registry.get_sample_value("h_sum", {"q": "a"}) or 0.0 for registry in (one, bulk)]
    assert abs(sums[0] - sums[1]) <= 1e-6 * max(1.0, sums[0])
