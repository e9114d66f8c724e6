"""What a baseline in Python tells of itself: the time and the CPU of its work, without its start and its imports."""

import json
import sys
from collections.abc import Mapping, Sequence

from bench.environment import run_measured


def tell(seconds: float, cpu_seconds: float) -> None:
    """Print what `run_script` reads."""
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds}))


def run_script(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float, float]:
    """Run a baseline, a module and its arguments; return the seconds and CPU seconds of its work, and its memory."""
    used = run_measured([sys.executable, "-m", *command], environment)
    said = json.loads(used.said)
    return said["seconds"], said["cpu_seconds"], used.memory_mb
