"""The cores that a process may use: by its affinity and by the quotas of its cgroups."""

import os
from pathlib import Path

import pytest

from rowferry_worker.machine import count_cores


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 8), ("50000 100000", 1), ("100000 100000", 1), ("150000 100000", 2), ("1600000 100000", 8)],
)
def test_a_quota_bounds_the_cores_and_is_rounded_up(quota: str, cores: int, tmp_path: Path) -> None:
    root = write(tmp_path, {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": quota})
    assert count_cores(root) == cores


def test_the_tightest_quota_of_all_parents_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/system.slice/worker.service",
        "sys/fs/cgroup/system.slice/cpu.max": "200000 100000",
        "sys/fs/cgroup/system.slice/worker.service/cpu.max": "400000 100000",
    }
    assert count_cores(write(tmp_path, files)) == 2


@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct"])
@pytest.mark.parametrize("path", ["/", "/docker/4f2a", "/docker/not-in-this-container"])
@pytest.mark.parametrize(("quota", "cores"), [("300000", 3), ("-1", 8)])
def test_the_first_version_of_cgroups_is_read_too(
    controllers: str, path: str, quota: str, cores: int, tmp_path: Path
) -> None:
    folder = "" if "not" in path else path.lstrip("/")
    place = f"sys/fs/cgroup/{controllers}/{folder}"
    files = {
        "proc/self/cgroup": f"4:memory:/elsewhere\n3:{controllers}:{path}\n0::/",
        f"{place}/cpu.cfs_quota_us": quota,
        f"{place}/cpu.cfs_period_us": "100000",
    }
    assert count_cores(write(tmp_path, files)) == cores


def test_without_cgroups_the_affinity_counts_and_without_it_all_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert count_cores(tmp_path) == 8
    monkeypatch.delattr(os, "sched_getaffinity")
    assert count_cores(tmp_path) == os.cpu_count()
