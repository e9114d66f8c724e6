"""The demo ends well, and shows how a killed worker's batch is taken over."""

import os
import re
from pathlib import Path

import pytest

from support.processes.cli import run_rowferry, well


@pytest.mark.soak
def test_the_demo_kills_a_worker_and_ends_with_a_clean_audit(tmp_path: Path) -> None:
    done = well(run_rowferry(["demo", "--entries", "800"], dict(os.environ), tmp_path))
    killed = re.search(r"kill -9 (\d+): a worker dies in the middle of batch (\d+)", done.stdout)
    assert killed is not None
    pid, batch = killed.groups()
    assert f"Worker process {pid} was lost in the middle of batch {batch} (" in done.stdout
    assert f"Batch {batch} was taken over by process " in done.stdout
    assert "0 of them without an object" in done.stdout
    assert done.stdout.endswith("$ rowferry migrate\n"), "what a stranger types next"
