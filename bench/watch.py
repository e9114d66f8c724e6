"""Looks at servers and workers several times a second, from a thread, while workers run: pace, CPU, memory."""

import re
import threading
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from bench.server_cpu import TICKS, list_processes, read_server_cpu, read_stat
from rowferry_lab.servers.server_process import ServerFailed

EVERY_SECONDS = 0.25
LIMIT = re.compile(r"^rowferry_objects_in_flight_limit(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen at one time; every count is that since the server's start."""

    at: float
    """Seconds since the workers were started."""
    objects: int
    """Stored by the production server."""
    megabytes: float
    """Of bodies that it has received, also of those that are not complete."""
    accepted: dict[str, int]
    """Writes, by access key."""
    refused: int
    """Writes."""
    cpu_seconds: float = 0.0
    """Of the workers."""
    server_cpu_seconds: float = 0.0
    """Of the S3 servers."""
    postgres_cpu_seconds: float = 0.0
    memory_mb: float = 0.0
    """Resident, the sum over the processes of all workers; pages that they share count in each."""
    own_memory_mb: float = 0.0
    """The same, each shared page divided by the number of its users (PSS)."""
    largest_mb: float = 0.0
    """The resident size of the largest process."""
    limit: float | None = None
    """Objects in flight that the workers allow themselves; None where that was not asked."""


class Counting(Protocol):
    """A server that counts what it does."""

    endpoint_url: str

    def read_stats(self) -> dict[str, Any]:
        """Return the counts since its start, and when they were taken, by the monotonic clock. Raises ServerFailed."""
        ...


@dataclass(slots=True)
class Watch:
    """What to look at; `start` and `stop` it."""

    production: Counting
    legacy: Counting | None = None
    """Where it is another server."""
    postgres_pid: int | None = None
    weighs: bool = False
    """Whether memory is looked at."""
    metrics_url: str | None = None
    """Where the worker shows its metrics."""
    every_seconds: float = EVERY_SECONDS
    samples: list[Sample] = field(default_factory=list)
    _pids: list[int] = field(default_factory=list)
    _began: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self, pids: Sequence[int]) -> None:
        """Begin to look at these workers, whose children count as well."""
        self._pids, self._began = list(pids), time.monotonic()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _look_on(self) -> None:
        while not self._over.wait(self.every_seconds):
            try:
                self.samples.append(self._look())
            except ServerFailed:
                continue  # It has an outage.

    def _look(self) -> Sample:
        stats = self.production.read_stats()
        cpu = stats["cpu_seconds"] + (self.legacy.read_stats()["cpu_seconds"] if self.legacy else 0.0)
        pids = [pid for worker in self._pids for pid in list_processes(worker)]
        sizes = [read_sizes(pid) for pid in pids] if self.weighs else []
        return Sample(
            at=stats["seconds"] - self._began,
            objects=stats["objects"],
            megabytes=stats["bytes_received"] / 1e6,
            accepted=stats["writes_accepted"],
            refused=sum(stats["writes_refused"].values()),
            cpu_seconds=sum(map(read_cpu, pids)),
            server_cpu_seconds=cpu,
            postgres_cpu_seconds=read_server_cpu(self.postgres_pid) if self.postgres_pid else 0.0,
            memory_mb=sum(resident for resident, _ in sizes),
            own_memory_mb=sum(own for _, own in sizes),
            largest_mb=max((resident for resident, _ in sizes), default=0.0),
            limit=read_limit(self.metrics_url) if self.metrics_url else None,
        )


def between(samples: Sequence[Sample], first: float, last: float) -> tuple[Sample, Sample]:
    """Return the samples nearest to two times. Raises AssertionError where there are not two."""
    found = [min(samples, key=lambda sample: abs(sample.at - at)) for at in (first, last)]
    assert found[0].at < found[1].at, f"no samples between {first:.1f} s and {last:.1f} s"
    return found[0], found[1]


def rate(samples: Sequence[Sample], first: float, last: float) -> float:
    """Return the objects a second between two times."""
    begin, end = between(samples, first, last)
    return (end.objects - begin.objects) / (end.at - begin.at)


def curve(samples: Sequence[Sample], step: float = 1.0) -> list[list[float]]:
    """Return [seconds, objects a second] for each step."""
    kept = [samples[0]] if samples else []
    for sample in samples:
        if sample.at - kept[-1].at >= step:
            kept.append(sample)
    return [[b.at, (b.objects - a.objects) / (b.at - a.at)] for a, b in pairwise(kept)]


def read_cpu(pid: int) -> float:
    """Return the CPU seconds of a process and of its children that are gone; 0 once it is gone."""
    try:
        return sum(map(int, read_stat(pid)[11:15])) / TICKS
    except OSError:
        return 0.0


def read_sizes(pid: int) -> tuple[float, float]:
    """Return the resident size and the proportional size of a process in MB; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0, 0.0
    sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines if line.endswith("kB")}
    return sizes.get("Rss", 0.0), sizes.get("Pss", 0.0)


def read_limit(url: str) -> float | None:
    """Return the worker's limit of objects in flight; None while it does not show one."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            found = LIMIT.findall(response.read().decode())
    except OSError:
        return None
    return sum(map(float, found)) if found else None
