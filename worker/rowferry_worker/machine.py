"""What this process may use of its machine: cores, memory, open files. Read from the system, bounded by its cgroups."""

import logging
import math
import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path

from rowferry.http.descriptors import RESERVED, raise_limit

_log = logging.getLogger(__name__)

MOUNT = Path("/sys/fs/cgroup")
PROC = Path("/proc")

PROCESS_BYTES = 256 * 1024 * 1024
"""The memory without which no further process is started: a worker takes 60 MB to 300 MB, by what it streams."""
BODIES_BYTES = 96 * 1024 * 1024
"""What the bodies under way may take of a process's memory; half as much again where parts that wait for the digest of
the whole all end together. A worker stays below 300 MB."""
LEAST_BODIES_BYTES = 16 * 1024 * 1024
"""Two parts of 8 MiB: with less a worker could not read one while it writes another."""
MEMORY_SHARE = 8
"""All processes of a worker together hold no more bodies than an eighth of the memory."""
MOST_IN_FLIGHT = 4096
"""Of a process that is not told otherwise; one that fills its core has fewer."""
CONNECTIONS_AN_OBJECT = 2
"""One to each side while an object is streamed."""
NO_LIMIT_BYTES = 1 << 60
"""cgroup v1 says that there is no limit by a number above this."""


def count_cores() -> int:
    """Return how many cores this process may use, by its affinity and by the quota of its cgroup; at least 1.

    A quota is rounded up, so that all of it can be used, as Go's runtime does (GOMAXPROCS since Go 1.25).
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *(math.ceil(quota) for quota in _read_quotas())]))


def measure_memory() -> int:
    """Return how many bytes of memory are there to be used: what the system has left, or a cgroup allows."""
    return max(0, min([_read_available(), *_read_memory_left()]))


def choose_processes() -> int:
    """Return how many worker processes suit this machine: one for each core that has memory for one; at least 1."""
    return max(1, min(count_cores(), measure_memory() // PROCESS_BYTES))


def forbid_cores() -> None:
    """Let this process, and those that it starts, leave no core when they crash: it would hold every secret."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def log_machine(processes: int) -> None:
    """Log how many worker processes run, what was found on this machine, and the bounds of each that follow."""
    _log.info("machine measured", extra={"processes": processes, **describe_machine(processes)})


def choose_bodies_budget(processes: int = 1) -> int:
    """Return how many bytes of bodies a process may hold, if so many run on this machine."""
    return max(LEAST_BODIES_BYTES, min(BODIES_BYTES, measure_memory() // MEMORY_SHARE // max(1, processes)))


def describe_machine(processes: int) -> dict[str, int]:
    """Return what was found, and the bounds of each process that follow from it if so many run, as fields of a log."""
    return {
        "cores": count_cores(),
        "memory_mb": measure_memory() // 1_000_000,
        "descriptors": raise_limit(),
        "max_in_flight": bound_objects(),
        "max_bodies_mb": choose_bodies_budget(processes) // 1_000_000,
    }


def bound_objects() -> int:
    """Return how many objects may be in flight, at most MOST_IN_FLIGHT; fewer where descriptors are few.

    Raises the limit of descriptors as far as it may.
    """
    limit = raise_limit()
    return max(1, min(MOST_IN_FLIGHT, max(limit - RESERVED, limit // 2) // CONNECTIONS_AN_OBJECT))


def _read_available() -> int:
    """Return the memory that can be had without swapping; where the system does not say, all that it has."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", _read(PROC / "meminfo") or "", re.MULTILINE)
    return int(found[1]) * 1024 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _read_quotas() -> Iterator[float]:
    """Yield the quotas of this process's cgroups, in cores."""
    for group in _list_groups("cpu"):
        quota, period = _read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")
        words = (_read(group / "cpu.max") or f"{quota} {period}").split()
        if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
            yield int(words[0]) / int(words[1])


def _read_memory_left() -> Iterator[int]:
    """Yield what this process's cgroups allow beside what they use; the page cache does not count as used."""
    for group in _list_groups("memory"):
        for most, used, cache in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.high", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            limit = _read(group / most)
            if limit is None or not limit.isdecimal() or int(limit) > NO_LIMIT_BYTES:
                continue
            idle = re.search(rf"^{cache} (\d+)$", _read(group / "memory.stat") or "", re.MULTILINE)
            yield int(limit) - int(_read(group / used) or 0) + (int(idle[1]) if idle else 0)


def _list_groups(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's cgroup and of those above it: each of them may have a limit.

    In a container the path in /proc may be that of the host; then the mount's own folder is the cgroup.
    """
    for line in (_read(PROC / "self" / "cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for root in {MOUNT / controllers, MOUNT / controller} if controllers else [MOUNT]:
            folder = root / path.lstrip("/")
            yield from (group for group in (folder, *folder.parents) if group.is_relative_to(root))


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
