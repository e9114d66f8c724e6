"""The metrics of workers and exporter, and the recording rules, as a page of docs/."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric

from references.words import block, escape, fill, table
from rowferry_exporter.metrics import describe
from rowferry_worker.monitoring import metrics

RULES = Path("dashboards/prometheus/rules/recording.yml")
HEAD = ("metric", "type", "labels", "what it says")


def write_page() -> Iterator[str]:
    """Yield the paragraphs of docs/metrics.md below those that are written by hand."""
    yield "## Workers"
    yield fill(
        "`rowferry worker --metrics-port 9464` serves them. Each has the label `host` as well, and of several "
        "processes those that cannot be added up the label `process`. With them come `process_cpu_seconds_total`, "
        "`process_resident_memory_bytes` and the like, as Prometheus' own library names them. A histogram has "
        "`_bucket`, `_sum` and `_count`."
    )
    yield fill(
        f"A process names the first {metrics.MOST_WORK} pairs of a migration and one of its queues that it works on; "
        f"those after them share the names `{metrics.OTHERS}`. One pair has about 70 series in each process or, with "
        "`--processes`, in each worker command."
    )
    own = [each for each in vars(metrics).values() if isinstance(each, (Counter, Gauge, Histogram))]
    yield table(HEAD, (write_row(next(iter(each.describe())), each) for each in own))
    yield "## Exporter"
    yield fill("`rowferry exporter` serves them: gauges of the whole queue, from the [views](views.md).")
    yield table(HEAD, (write_row(family, family) for family in describe({})))
    yield "## Recording rules"
    yield fill("`dashboards/prometheus/rules/recording.yml` has them: what alerts, panels and people share.")
    yield block(RULES.read_text(encoding="utf-8").splitlines(), "yaml")


def write_row(family: Metric, labelled: Any) -> tuple[str, ...]:
    """Return the cells of a metric. `labelled` has its labels' names, which prometheus_client keeps to itself."""
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = " ".join(f"`{label}`" for label in labelled._labelnames)  # noqa: SLF001
    return f"`{name}`", family.type, labels, escape(family.documentation)
