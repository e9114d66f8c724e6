"""The metrics of workers and exporter, and the recording rules, as a page of docs/."""

from collections.abc import Iterable, Iterator
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
    yield table(HEAD, list_worker_metrics())
    yield "## Exporter"
    yield fill("`rowferry exporter` serves them: gauges of the whole queue, from the [views](views.md).")
    yield table(HEAD, list_exporter_metrics())
    yield "## Recording rules"
    yield fill("`dashboards/prometheus/rules/recording.yml` has them: what alerts, panels and people share.")
    yield block(RULES.read_text(encoding="utf-8").splitlines(), "yaml")


def list_worker_metrics() -> Iterator[tuple[str, ...]]:
    """Yield a row for each metric of a worker, in the order in which they are defined."""
    for own in vars(metrics).values():
        if isinstance(own, (Counter, Gauge, Histogram)):
            yield write_row(next(iter(own.describe())), read_labels(own))


def list_exporter_metrics() -> Iterator[tuple[str, ...]]:
    """Yield a row for each metric of the exporter, as it serves them of an empty queue."""
    for family in describe({}):
        yield write_row(family, read_labels(family))


def read_labels(family: Any) -> Iterable[str]:
    """Return the names of the labels, which prometheus_client keeps to itself."""
    return family._labelnames  # noqa: SLF001


def write_row(family: Metric, labels: Iterable[str]) -> tuple[str, ...]:
    """Return the cells of a metric."""
    name = f"{family.name}_total" if family.type == "counter" else family.name
    return f"`{name}`", family.type, " ".join(f"`{label}`" for label in labels), escape(family.documentation)
