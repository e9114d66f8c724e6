"""Workers that take 64 KiB for the smallest part of an upload: megabytes cost seconds and tell no more."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rowferry_worker.objects import transfer

PART_BYTES = 64 * 1024

MAKE_SMALLER = f"""
from rowferry_worker.objects import transfer
transfer.SMALLEST_PART_BYTES = transfer.COPY_PART_BYTES = {PART_BYTES}
"""


@contextmanager
def small_parts(folder: Path) -> Iterator[None]:
    """Have workers here, and in processes started here, send and copy parts of PART_BYTES until the block ends."""
    hook = folder / "small_parts"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(MAKE_SMALLER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(hook), prepend=os.pathsep)
        patch.setattr(transfer, "SMALLEST_PART_BYTES", PART_BYTES)
        patch.setattr(transfer, "COPY_PART_BYTES", PART_BYTES)
        yield
