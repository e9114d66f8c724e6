"""What a PostgreSQL on this machine uses, from /proc: one backend, or all of the server."""

import os
from contextlib import suppress
from pathlib import Path

PROCESSES = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
OWN, CHILDREN = slice(11, 13), slice(13, 15)
"""utime and stime of a process, and those of its children that have ended, behind its name in /proc/PID/stat."""
MOST_LOOKS = 10


def read_backend_cpu(pid: int) -> float:
    """Return the CPU seconds of one process, of its main thread: to the nanosecond where the kernel counts them."""
    try:
        return int((PROCESSES / str(pid) / "schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return sum(map(int, read_stat(pid)[OWN])) / TICKS


def read_server_cpu(postmaster: int) -> float:
    """Return the CPU seconds of a server so far: its postmaster, its children, and those that have ended.

    A child that ends between two looks would be in neither, so they are repeated while children end.
    """
    before, live, ended = -1, 0, _count(postmaster, CHILDREN)
    for _ in range(MOST_LOOKS):
        if before == ended:
            break
        before, live = ended, sum(_count_if_there(pid) for pid in list_processes(postmaster))
        ended = _count(postmaster, CHILDREN)
    return (live + ended) / TICKS


def _count(pid: int, fields: slice) -> int:
    """Return the ticks in these fields of a process."""
    return sum(map(int, read_stat(pid)[fields]))


def _count_if_there(pid: int) -> int:
    """Return the ticks of a process itself; 0 once it is gone."""
    with suppress(OSError):
        return _count(pid, OWN)
    return 0


def list_processes(pid: int) -> list[int]:
    """Return a process and its children; nothing once it is gone, or where there is no /proc."""
    try:
        words = (PROCESSES / str(pid) / "task" / str(pid) / "children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [pid, *map(int, words)]


def read_stat(pid: int) -> list[str]:
    """Return the fields behind the name of the process, which may hold anything: its state, its parent, and more."""
    return (PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
