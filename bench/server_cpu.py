"""What a PostgreSQL on this machine uses, from /proc: one backend, or all of the server."""

import os
from pathlib import Path

PROCESSES = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
OWN, CHILDREN = slice(11, 13), slice(13, 15)
"""utime and stime of a process, and those of its children that have ended, behind its name in /proc/PID/stat."""


def read_backend_cpu(pid: int) -> float:
    """Return the CPU seconds of one process, of its main thread: to the nanosecond where the kernel counts them."""
    try:
        return int((PROCESSES / str(pid) / "schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return sum(map(int, read_stat(pid)[OWN])) / TICKS


def read_server_cpu(postmaster: int) -> float:
    """Return the CPU seconds of a server so far: its postmaster, its children, and those that have ended."""
    stat = read_stat(postmaster)
    ticks = sum(map(int, stat[OWN])) + sum(map(int, stat[CHILDREN]))
    for folder in PROCESSES.iterdir():
        if folder.name.isdigit():
            try:
                stat = read_stat(int(folder.name))
            except OSError:
                continue
            if int(stat[1]) == postmaster:
                ticks += sum(map(int, stat[OWN]))
    return ticks / TICKS


def read_stat(pid: int) -> list[str]:
    """Return the fields behind the name of the process, which may hold anything: its state, its parent, and more."""
    return (PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
