"""Ends with a sentence where a secret of the simulated environment is used with servers of one's own.

Run by compose.yaml in the profile `own`: the folder of the demo's secrets, then each file that is handed to a service.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path


def list_faults(demo: Path, files: list[Path], anonymous: str) -> Iterator[str]:
    """Yield what is wrong; an empty file means that the AWS SDK finds credentials by itself."""
    for file in files:
        try:
            own = file.read_text().strip()
        except PermissionError:
            words = "give it mode 640, and ROWFERRY_SECRETS_GROUP of compose/own.env its group (`id -g`)"
            yield f"The secret {file.name} cannot be read by the containers: {words}."
            continue
        if own and own == (demo / file.name).read_text().strip():
            yield f"The secret {file.name} is that of the demo, which everybody knows: put your own into its file."
    if anonymous != "false":
        yield "Grafana shows everything to everybody: leave ROWFERRY_GRAFANA_ANONYMOUS to the simulated servers."


def main() -> int:
    """Return the exit status: 2 where something is wrong, one sentence for each."""
    demo, *files = map(Path, sys.argv[1:])
    faults = list(list_faults(demo, files, os.environ.get("ROWFERRY_GRAFANA_ANONYMOUS", "false")))
    for fault in faults:
        print(fault, file=sys.stderr)  # noqa: T201 - it is a program
    return 2 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
