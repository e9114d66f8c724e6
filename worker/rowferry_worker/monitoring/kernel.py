"""What the kernel knows of worker processes: the others of this kernel see at once when one has ended."""

import os
import select
from contextlib import suppress
from functools import cache
from pathlib import Path

ENDING_MS = 100
"""How long to wait for the end of a process that is being killed: its connections are closed before it is gone."""


def tells_ends() -> bool:
    """Return whether this kernel, and this Python, can say that a process has ended."""
    return hasattr(os, "pidfd_open") and _read_namespace() is not None


def describe_process(pid: int) -> str | None:
    """Return the boot id of the kernel, the namespaces of ids and times, the id and the start of a process.

    They are joined by "/"; the start is in clock ticks since the boot: proc(5), namespaces(7). None where there is no
    such process, or no /proc of Linux. No other process of this kernel is ever described like that.
    """
    namespace, start = _read_namespace(), _read_start(pid)
    return None if namespace is None or start is None else f"{namespace}/{pid}/{start}"


def has_ended(process: str) -> bool:
    """Return whether the kernel says that this process has ended; False where it runs or this kernel cannot know."""
    namespace = _read_namespace()
    if namespace is None or not process.startswith(f"{namespace}/"):
        return False
    # Python may be built without the call, a sandbox forbid it; and what another worker has told may be anything.
    with suppress(AttributeError, OSError, OverflowError, ValueError):
        pid, start = process.removeprefix(f"{namespace}/").split("/")
        try:
            descriptor = os.pidfd_open(int(pid))
        except ProcessLookupError:
            return True
        try:
            return _read_start(int(pid)) not in {None, start} or _ends(descriptor)
        finally:
            os.close(descriptor)
    return False


def _ends(descriptor: int) -> bool:
    """Return whether all threads of a process have ended, or do within ENDING_MS: pidfd_open(2)."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(ENDING_MS))


@cache
def _read_namespace() -> str | None:
    """Return what tells this kernel and these namespaces from others; None where /proc is not of the namespace."""
    try:
        if str(Path("/proc/self").readlink()) != str(os.getpid()):
            return None
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        times = Path("/proc/self/ns/time")  # the start is told by the clock of the reader's
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}/{times.stat().st_ino if times.exists() else 0}"
    except OSError:
        return None


def _read_start(pid: int) -> str | None:
    """Return when a process was started; None where it is not there, or hidden.

    Read of its main thread: emulators of other processors make up what stands in the process's own file.
    """
    try:
        stat = Path(f"/proc/{pid}/task/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]
