"""The command line as a user calls it: in a process of its own, with its exit status."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from processes import DEADLINE

Done = subprocess.CompletedProcess[str]


class Run(Protocol):
    """Runs `rowferry <arguments>` to its end, with these variables in its environment as well."""

    def __call__(self, *arguments: str, **environment: str) -> Done: ...


def run_rowferry_in(folder: Path) -> Run:
    """Return what runs commands in a folder, which may hold a plan."""

    def run(*arguments: str, **environment: str) -> Done:
        return subprocess.run(
            [sys.executable, "-m", "rowferry", *arguments],
            env={**os.environ, **environment},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE.total_seconds(),
            check=False,
        )

    return run
