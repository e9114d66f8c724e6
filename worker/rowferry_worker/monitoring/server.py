"""HTTP endpoint for the metrics of one worker process, or of all the processes of one supervisor."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, cast

from prometheus_client import REGISTRY, CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import (
    MultiProcessCollector,
    mark_process_dead,  # pyright: ignore[reportUnknownVariableType]
)
from prometheus_client.registry import Collector

from rowferry.errors import UsageError
from rowferry.health_server import Endpoint
from rowferry_worker.monitoring.metrics import FOLDER, LAST_HEARTBEAT
from rowferry_worker.service import name_host

READY_FOR = timedelta(seconds=20)
"""A worker is ready if its last heartbeat succeeded at most this long ago: three may be lost."""

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the folder made in it is private, and has a name of chance
"""Writable in every Linux container."""

Pids = Callable[[], Mapping[int, int]]
"""Returns the ids of the running processes, by their numbers."""


def serve_own_metrics(host: str, port: int, is_progressing: Callable[[], bool]) -> Endpoint:
    """Serve the metrics of this process. Raises UsageError when the address cannot be used."""
    return Endpoint(host, port, _name_host(REGISTRY), partial(is_ready, REGISTRY), is_progressing)


class SharedMetrics:
    """A private folder in which supervised processes keep their metrics."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables by which a process keeps its metrics there."""
        return {FOLDER: str(self._folder)}

    def forget(self, number: int) -> None:
        """Drop the gauges of a process that has ended, such as objects in flight; its counters stay."""
        mark_process_dead(number, str(self._folder))

    def serve(self, host: str, port: int, pids: Pids) -> Endpoint:
        """Serve the metrics of all processes, which the supervisor replaces where they hang.

        Raises UsageError when the address cannot be used.
        """
        registry = CollectorRegistry()
        registry.register(FilesCollector(self._folder))
        registry.register(ProcessesCollector(pids))
        return Endpoint(host, port, _name_host(registry), partial(is_ready, registry))


@contextmanager
def share_metrics() -> Generator[SharedMetrics]:
    """Yield a folder for the metrics of several processes; remove it afterwards.

    Raises UsageError where no folder can be written: even a container with a read-only root has /dev/shm.
    """
    try:
        folder = TemporaryDirectory(prefix="rowferry-metrics-", dir=_find_writable_folder())
    except OSError as error:
        where = "TMPDIR, /tmp or /dev/shm"
        raise UsageError(
            f"The metrics of several processes need a folder in {where}, and none can be written ({error.strerror}): "
            "set TMPDIR, or --processes 1."
        ) from error
    with folder as name:
        yield SharedMetrics(Path(name))


def _find_writable_folder() -> str:
    try:
        return gettempdir()
    except FileNotFoundError:
        return SHARED_MEMORY


def is_ready(registry: CollectorRegistry) -> bool:
    """Return whether the last heartbeat of every process succeeded within READY_FOR."""
    last_heartbeat = registry.get_sample_value(LAST_HEARTBEAT)
    return last_heartbeat is not None and time.time() - last_heartbeat < READY_FOR.total_seconds()


def _name_host(registry: CollectorRegistry) -> CollectorRegistry:
    """Return a registry of the same metrics with the label `host` on each: what rowferry.worker calls this host."""
    named = CollectorRegistry()
    named.register(HostCollector(registry, name_host()))
    return named


class HostCollector(Collector):
    """The metrics of a registry, each sample with the label `host`."""

    def __init__(self, registry: CollectorRegistry, host: str) -> None:
        self._registry = registry
        self._host = host

    def collect(self) -> Iterable[Metric]:
        """Yield copies, since a collector may return the same metric again."""
        for metric in self._registry.collect():
            copy = Metric(metric.name, metric.documentation, metric.type)
            copy.samples = [sample._replace(labels={**sample.labels, "host": self._host}) for sample in metric.samples]
            yield copy


class FilesCollector(Collector):
    """Merges the metrics that processes keep in files; skips empty files, on which merging would fail."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterable[Metric]:
        """Return the merged metrics."""
        files = [path for path in self._folder.glob("*.db") if _size_bytes(path)]
        return cast("Any", MultiProcessCollector).merge([str(path) for path in files])


class ProcessesCollector(Collector):
    """CPU, memory and open files of each process, under the standard names, with its number as the label `process`.

    Read from /proc: nothing on systems without one.
    """

    def __init__(self, pids: Pids) -> None:
        self._pids = pids

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of the running processes."""
        families: dict[str, Metric] = {}
        for number, pid in self._pids().items():
            for metric in ProcessCollector(pid=partial(str, pid), registry=None).collect():
                family = families.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
                for sample in metric.samples:
                    family.add_sample(sample.name, {**sample.labels, "process": str(number)}, sample.value)
        return families.values()


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0  # the gauges of a process that has just ended
