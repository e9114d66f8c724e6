"""The metrics that dashboards may ask for."""

from rowferry_exporter.metrics import describe


def known_metrics() -> set[str]:
    """Return the names under which the metrics of workers and exporter are scraped."""
    from prometheus_client import Counter, Gauge, Histogram

    from rowferry_worker.monitoring import metrics

    suffixes: dict[type, tuple[str, ...]] = {
        Counter: ("_total",),
        Gauge: ("",),
        Histogram: ("_bucket", "_count", "_sum"),
    }
    own = [metric for metric in vars(metrics).values() if isinstance(metric, (Counter, Gauge, Histogram))]
    names = {
        next(iter(m.describe())).name + suffix
        for m in own
        for kind in suffixes
        if isinstance(m, kind)
        for suffix in suffixes[kind]
    }
    return names | {family.name for family in describe({})}
