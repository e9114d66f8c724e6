"""Workers that take 64 KiB for the smallest part of an upload, and try again at once: more only costs seconds."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

from msgspec.structs import replace

from rowferry.plan import Plan
from rowferry.s3 import retry
from rowferry_worker import migration
from rowferry_worker.copying import server_copy, stream_copy
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.multipart import streamed_parts
from rowferry_worker.objects.memory import BodyBudget

PART_BYTES = 64 * 1024
RETRY_BASE = timedelta(milliseconds=1)
PLAN_BYTES = 5 * 1024 * 1024
"""The least that a plan may say of `multipart_threshold_bytes`: such workers take it for PART_BYTES."""

MAKE_SMALLER = f"""
import sys
sys.path.append({str(Path(__file__).parents[2])!r})
from support.processes.small_parts import make_smaller
make_smaller()
sys.path.pop()
"""
"""What a process of its own has to run for that, before all else."""

MAKE_PIPES = f"""
from rowferry_worker.multipart import streamed_parts
streamed_parts.PIPE_BYTES = {PART_BYTES // 4}
"""
"""What it has to run as well for parts to be sent while they are read, as those of 5 MiB are."""

choose_as_planned = migration.choose_method


def choose_smaller(plan: Plan, bodies: BodyBudget | None = None) -> CopyMethod:
    """Return how objects are copied: part by part from PART_BYTES on, where the plan has a threshold at all."""
    if plan.migration.multipart_threshold_bytes is not None:
        plan = replace(plan, migration=replace(plan.migration, multipart_threshold_bytes=PART_BYTES))
    return choose_as_planned(plan, bodies)


def make_smaller() -> None:
    """Make the parts and the waits of this process smaller, for good."""
    stream_copy.SMALLEST_PART_BYTES = server_copy.COPY_PART_BYTES = PART_BYTES
    migration.choose_method = choose_smaller
    retry.REQUEST_BASE = RETRY_BASE


@contextmanager
def small_parts(folder: Path, *, piped: bool = False) -> Iterator[None]:
    """Have workers here, and in processes started here, send and copy parts of PART_BYTES until the block ends.

    `piped`: they send parts while they read them.
    """
    hook = folder / "small_parts"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(MAKE_SMALLER + MAKE_PIPES * piped)
    path = os.pathsep.join([str(hook), *filter(None, [os.environ.get("PYTHONPATH")])])
    with (
        patch.dict(os.environ, {"PYTHONPATH": path}),
        patch.object(stream_copy, "SMALLEST_PART_BYTES", PART_BYTES),
        patch.object(server_copy, "COPY_PART_BYTES", PART_BYTES),
        patch.object(migration, "choose_method", choose_smaller),
        patch.object(retry, "REQUEST_BASE", RETRY_BASE),
        patch.object(streamed_parts, "PIPE_BYTES", PART_BYTES // 4 if piped else streamed_parts.PIPE_BYTES),
    ):
        yield
