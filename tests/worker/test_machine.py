"""A worker uses the machine that is there, not the one that its container runs on."""

import os
import resource
import sys
from pathlib import Path

import pytest

from rowferry_worker import machine
from rowferry_worker.machine import bound_objects, choose_bodies_budget, choose_processes, count_cores, measure_memory
from rowferry_worker.options import Options
from support.processes.processes import run_to_end

MIB, GIB = 1024 * 1024, 1024**3


@pytest.fixture(autouse=True)
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 8 cores and 16 GiB without a cgroup."""
    monkeypatch.setattr(machine, "MOUNT", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "PROC", tmp_path / "proc")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    write(tmp_path, "proc/meminfo", f"MemTotal: {32 * GIB // 1024} kB\nMemAvailable:   {16 * GIB // 1024} kB\n")
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


SERVICE = "system.slice/rowferry.service"


def quota(bound: str) -> dict[str, str]:
    """Return the files of a service that has so many microseconds in 100 ms."""
    return {"proc/self/cgroup": f"0::/{SERVICE}\n", f"cgroup/{SERVICE}/cpu.max": f"{bound} 100000\n"}


def older(mount: str, path: str) -> dict[str, str]:
    """Return the files of the older cgroups: three cores, 1 GiB."""
    return {
        "proc/self/cgroup": f"4:memory:{path}\n3:cpuset:/\n2:cpu,cpuacct:{path}\n1:name=systemd:/\n",
        f"cgroup/{mount}/cpu.cfs_quota_us": "300000\n",
        f"cgroup/{mount}/cpu.cfs_period_us": "100000\n",
        "cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
        "cgroup/memory/memory.usage_in_bytes": f"{600 * MIB}\n",
        "cgroup/memory/memory.stat": f"cache 5\ntotal_inactive_file {200 * MIB}\n",
    }


UNBOUNDED = {"proc/self/cgroup": "0::/\n", "cgroup/cpu.max": "max 100000\n", "cgroup/memory.max": "max\n"}
OF_GROUP = {
    "proc/self/cgroup": "0::/a/b\n",
    "cgroup/a/cpu.max": "200000 100000\n",
    "cgroup/a/b/cpu.max": "max 100000\n",
}
OLDER_UNBOUNDED = {
    "proc/self/cgroup": "2:memory:/\n1:cpu:/\n",
    "cgroup/cpu/cpu.cfs_quota_us": "-1\n",
    "cgroup/cpu/cpu.cfs_period_us": "100000\n",
    "cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "cgroup/memory/memory.usage_in_bytes": f"{20 * GIB}\n",
}


@pytest.mark.parametrize(
    ("files", "cores", "memory"),
    [
        (UNBOUNDED, 8, 16 * GIB),
        (quota("50000"), 1, 16 * GIB),
        (quota("150000"), 2, 16 * GIB),
        (quota("400000"), 4, 16 * GIB),
        (quota("6400000"), 8, 16 * GIB),
        (OF_GROUP, 2, 16 * GIB),
        (older("cpu", "/"), 3, 624 * MIB),
        (older("cpu,cpuacct", "/"), 3, 624 * MIB),
        (older("cpu", "/docker/4711"), 3, 624 * MIB),  # the path is the host's
        (older("cpu,cpuacct", "/docker/4711"), 3, 624 * MIB),
        (OLDER_UNBOUNDED, 8, 16 * GIB),
    ],
)
def test_cores_and_memory_are_those_that_the_groups_of_the_process_leave(
    system: Path, files: dict[str, str], cores: int, memory: int
) -> None:
    for name, text in files.items():
        write(system, name, text)
    assert (count_cores(), measure_memory()) == (cores, memory)


def test_affinity_bounds_the_cores_and_without_it_all_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 5}, raising=False)
    assert count_cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    assert count_cores() == os.cpu_count()


@pytest.mark.parametrize(
    ("available", "processes", "budget"),
    [
        (16 * GIB, 1, 96 * MIB),
        (16 * GIB, 8, 96 * MIB),
        (GIB, 1, 96 * MIB),
        (GIB, 4, 32 * MIB),
        (100 * MIB, 2, 16 * MIB),
    ],
)
def test_bodies_take_little_memory_and_less_on_a_small_machine(
    system: Path, available: int, processes: int, budget: int
) -> None:
    write(system, "proc/meminfo", f"MemAvailable: {available // 1024} kB\n")
    assert choose_bodies_budget(processes) == budget


def test_a_system_that_says_nothing_of_its_memory_is_believed_to_have_all_of_it_left(system: Path) -> None:
    (system / "proc" / "meminfo").unlink()
    assert measure_memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_objects_in_flight_have_two_connections_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (1128, 1128))
    assert bound_objects() == 500
    assert Options().parallel == 500, "a worker that is told no number keeps to it"


@pytest.mark.parametrize(
    ("memory_mib", "quota", "processes"),
    [(16_384, "max", 8), (16_384, "50000", 1), (16_384, "300000", 3), (600, "max", 2), (100, "max", 1)],
)
def test_there_is_a_process_for_each_core_that_has_memory_for_one(
    memory_mib: int, quota: str, processes: int, system: Path
) -> None:
    """A pod without a CPU limit, on a node of many cores, is killed if it takes more memory than it may."""
    write(system, "proc/meminfo", f"MemAvailable:   {memory_mib * 1024} kB\n")
    write(system, "proc/self/cgroup", "0::/\n")
    write(system, "cgroup/cpu.max", f"{quota} 100000\n")
    assert choose_processes() == processes


TELL_AT_ITS_END = """
import atexit, resource, sys
atexit.register(lambda: print(resource.getrlimit(resource.RLIMIT_CORE)))
from rowferry_cli import main
sys.argv = ["rowferry", "worker", "--processes", "1"]
main()
"""


def test_a_worker_leaves_no_core() -> None:
    """A core of it would hold DATABASE_URL and the keys of the buckets."""
    nowhere = {**os.environ, "DATABASE_URL": "postgresql://127.0.0.1:1/x"}
    ended = run_to_end([sys.executable, "-c", TELL_AT_ITS_END], env=nowhere)
    assert ended.stdout == "(0, 0)\n", ended.stderr
