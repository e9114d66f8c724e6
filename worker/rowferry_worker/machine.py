"""What this process may use of the machine: cores."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path("/")


def count_cores(root: Path = ROOT) -> int:
    """Return how many cores this process may use, at least 1: by its affinity and its cgroups' quotas, rounded up.

    With a quota of 0.5 it is 1, with 1.5 it is 2: two processes then use all of it. `root` holds proc and sys.
    """
    return max(1, min([_count_affinity(), *map(math.ceil, _read_quotas(root))]))


def _count_affinity() -> int:
    with suppress(AttributeError):  # macOS has none
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read_quotas(root: Path) -> Iterator[float]:
    """Yield the quotas of the process's cgroup and of each that holds it, in cores. None without cgroups."""
    for folder in _find_cgroups(root):
        with suppress(OSError, ValueError):  # v2: "max 100000" or "50000 100000"
            quota, period = (folder / "cpu.max").read_text().split()
            yield int(quota) / int(period)
        with suppress(OSError, ValueError):  # v1: -1 is no quota
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            if int(quota) > 0:
                yield int(quota) / int(period)


def _find_cgroups(root: Path) -> Iterator[Path]:
    """Yield the folders of the process's CPU cgroup and its parents.

    A container sees its own cgroup at the top of the mount, whatever path /proc/self/cgroup names.
    """
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                top = root / "sys/fs/cgroup" / controllers
                cgroup = top / path.lstrip("/")
                yield from (folder for folder in (cgroup, *cgroup.parents) if folder.is_relative_to(top))
