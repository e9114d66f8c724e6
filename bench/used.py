"""Run a command, and write what it has used to a file as JSON: `python -S bench/used.py FILE COMMAND...`.

A process that is started counts as no smaller than the one that starts it: this one is small, and a bench is not.
"""

import json
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    """Return the command's exit status."""
    path, *command = sys.argv[1:]
    began = time.monotonic()
    status = subprocess.call(command)
    wall_seconds, usage = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1024 if platform.system() == "Linux" else 1024 * 1024
    Path(path).write_text(json.dumps([wall_seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit]))
    return status


if __name__ == "__main__":
    sys.exit(main())
