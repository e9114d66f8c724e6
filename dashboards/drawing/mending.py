"""What an operator does when nothing but ERROR is left: put the lost objects back, and type what the board says."""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

BUCKET = "sketch-legacy-s3"
SECONDS = 60
"""How long one command may take."""


def take_away(s3: Any, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Delete legacy objects, and return what is needed to put them back."""
    taken: dict[str, dict[str, Any]] = {}
    for key in keys:
        found = s3.get_object(Bucket=BUCKET, Key=key)
        taken[key] = {"Body": found["Body"].read(), "ContentType": found["ContentType"]}
        s3.delete_object(Bucket=BUCKET, Key=key)
    return taken


def put_back(s3: Any, taken: Mapping[str, dict[str, Any]]) -> None:
    """Write these objects again."""
    for key, content in taken.items():
        s3.put_object(Bucket=BUCKET, Key=key, **content)


def commands_of(shown: Mapping[str, Any]) -> list[str]:
    """Return what the panel *Errors by reason* of the answered dashboard Migration tells one to type, each once."""
    panel = next(panel for panel in shown["board"]["panels"] if panel["title"] == "Errors by reason")
    columns = {
        field["name"]: field["values"] for frame in shown["answers"][str(panel["id"])] for field in frame["fields"]
    }
    return list(dict.fromkeys(columns["then type this"]))


def type_in_shell(command: str) -> None:
    """Let a shell read and run a command, as it stands on the screen; raises SystemExit where it fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
        env={**os.environ, "PATH": path}, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{command}:\n{done.stdout}{done.stderr}")
