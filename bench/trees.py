"""This checkout, and another one to measure beside it: `ROWFERRY_BENCH_BEFORE` names its folder (a git worktree)."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = (".", "enqueue", "worker", "queues", "exporter", "cli", "lab")
"""Folders of a checkout that Python finds its packages in, before those of this one."""
BEFORE = "ROWFERRY_BENCH_BEFORE"
LONGEST_SECONDS = 900


def list_trees() -> dict[str, Path]:
    """Return the checkouts to measure: `now`, and `before` where there is one."""
    before = os.environ.get(BEFORE)
    return ({"before": Path(before)} if before else {}) | {"now": ROOT}


def run_in(
    tree: Path, *arguments: str, environment: Mapping[str, str] | None = None, exits: Sequence[int] = (0,)
) -> str:
    """Run Python with the code of a checkout and return what it said; AssertionError unless it exits as expected."""
    path = os.pathsep.join(str(tree / folder) for folder in PACKAGES)
    run = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env={**os.environ, **(environment or {}), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    assert run.returncode in exits, f"{arguments} ended with {run.returncode}: {run.stderr[-2000:]}"
    return run.stdout
