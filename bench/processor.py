"""Where the CPU goes: the worker's event-loop thread, its other threads, PostgreSQL. From /proc, so on Linux only."""

import os
import threading
from pathlib import Path

EVERY_SECONDS = 0.2
TICKS = os.sysconf("SC_CLK_TCK")
EVENT_LOOP = "rowferry-loop"
"""The worker's thread that sends and receives; our copies run on it."""
HAS_PROC = Path("/proc/self/stat").exists()


def read_times(path: Path) -> tuple[str, list[int]]:
    """Return the name of a process or thread and its utime, stime, cutime, cstime in ticks; see proc(5)."""
    text = path.read_text(encoding="utf-8", errors="replace")
    name, _, rest = text.rpartition(")")
    return name.partition("(")[2], [int(word) for word in rest.split()[11:15]]


def read_cpu_seconds(pid: int) -> float:
    """Return the CPU of a process, of its children that are gone, and of those that live; 0 where there is no /proc."""
    if not HAS_PROC:
        return 0.0
    ticks = sum(read_times(Path(f"/proc/{pid}/stat"))[1])
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            if parent == pid:
                ticks += sum(read_times(path)[1])
        except OSError:
            continue  # It has ended meanwhile; its parent counts it now.
    return ticks / TICKS


class ThreadClock:
    """Looks at the CPU of each thread of a process until it is gone."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._looking: threading.Thread | None = None
        self._seconds: dict[int, tuple[str, float]] = {}

    def watch(self, pid: int) -> None:
        """Begin to look at this process."""
        self._looking = threading.Thread(target=self._look, args=(pid,), daemon=True)
        self._looking.start()

    def stop(self) -> dict[str, float]:
        """Look no more; return the CPU seconds of its event loop and of all its other threads."""
        self._over.set()
        if self._looking is not None:
            self._looking.join()
        seconds = {"event_loop": 0.0, "other_threads": 0.0}
        for name, used in self._seconds.values():
            seconds["event_loop" if name.startswith(EVENT_LOOP) else "other_threads"] += used
        return seconds

    def _look(self, pid: int) -> None:
        tasks = Path(f"/proc/{pid}/task")
        while not self._over.wait(EVERY_SECONDS):
            for path in tasks.glob("*/stat"):
                try:
                    name, ticks = read_times(path)
                except OSError:
                    continue
                self._seconds[int(path.parent.name)] = (name, sum(ticks[:2]) / TICKS)
