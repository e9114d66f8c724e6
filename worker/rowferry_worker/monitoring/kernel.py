"""What the kernel knows of worker processes: the others of this kernel see at once when one has ended."""

import os
import select
from functools import cache
from pathlib import Path

ENDING_MS = 100
"""How long to wait for the end of a process that is being killed: its connections are closed before it is gone."""


def describe_process(pid: int) -> str | None:
    """Return what others know a process by: "kernel/namespace/pid/start"; None where it or Linux' /proc is not there.

    The kernel's boot id, the inode of the namespace of process ids, the id, and the start in clock ticks since the boot
    (proc(5), namespaces(7)): together they name no other process ever.
    """
    namespace, start = _read_namespace(), _read_start(pid)
    return None if namespace is None or start is None else f"{namespace}/{pid}/{start}"


def has_ended(process: str) -> bool:
    """Return whether the kernel says that this process has ended; False where it runs or this kernel cannot know."""
    namespace, pid, start = process.rsplit("/", 2)
    if namespace != _read_namespace():
        return False
    try:
        descriptor = os.pidfd_open(int(pid))
    except ProcessLookupError:
        return True
    except OSError:  # the call is forbidden, or older than this kernel
        return False
    try:
        if _read_start(int(pid)) not in {None, start}:
            return True
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)  # readable once all of its threads have ended: pidfd_open(2)
        return bool(poll.poll(ENDING_MS))
    finally:
        os.close(descriptor)


@cache
def _read_namespace() -> str | None:
    """Return this kernel and this namespace of process ids; None where /proc is not that of the namespace."""
    try:
        if str(Path("/proc/self").readlink()) != str(os.getpid()):
            return None
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return None


def _read_start(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]
