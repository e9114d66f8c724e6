"""What a daemon answers over HTTP, as a test reads it."""

import json
from collections import defaultdict

import urllib3
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from support.processes.processes import wait_for
from support.processes.worker_process import WorkerProcess


def fetch(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    """Return status and body of one GET."""
    with urllib3.HTTPConnectionPool(host, port, timeout=100, retries=False) as pool:
        response = pool.request("GET", path)
        return response.status, response.data.decode()


def scrape(port: int) -> list[Sample]:
    """Return every sample that /metrics holds."""
    status, body = fetch(port, "/metrics")
    assert status == 200, body
    return [sample for family in text_string_to_metric_families(body) for sample in family.samples]


def sum_of(samples: list[Sample], name: str, **labels: str) -> float:
    """Return the sum over the samples of this name that have these labels."""
    return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())


def values_by(samples: list[Sample], name: str, label: str) -> dict[str, float]:
    """Return the samples of this name, summed by one label, without the zeros."""
    found: dict[str, float] = defaultdict(float)
    for sample in samples:
        if sample.name == name:
            found[sample.labels[label]] += sample.value
    return {value: total for value, total in found.items() if total}


def served_port(worker: WorkerProcess) -> int:
    """Return the port on which a worker serves its metrics, once it says which."""
    wait_for(lambda: "serving metrics" in worker.messages(), by=[worker.process])
    (line,) = [line for line in worker.log.splitlines() if '"serving metrics"' in line]
    return find_served_port(line)


def find_served_port(line: str) -> int:
    """Return the port that a JSON line of a log speaks of."""
    return json.loads(line)["port"]


def has_said_all(port: int, batches: int) -> bool:
    """Return whether a worker has counted so many batches: a batch is DONE just before it is counted."""
    return sum_of(scrape(port), "rowferry_batch_seconds_count") == batches
