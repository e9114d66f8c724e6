"""Moves the calling thread, and all that it starts from then on, into a network namespace and back."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Be in a namespace that `ip netns` made until the block ends; threads that run already stay where they are."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(path: Path | int) -> None:
        descriptor = path if isinstance(path, int) else os.open(path, os.O_RDONLY)
        try:
            if libc.setns(descriptor, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(descriptor)

    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    enter(Path("/run/netns") / namespace)
    try:
        yield
    finally:
        enter(before)
