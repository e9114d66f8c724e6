"""An environment with the packages of the tests for each version of Python."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

TOOLS = Path("tools")
FOLDER = Path(".tools/matrix")
WRONG_HASH = re.compile("DO NOT MATCH THE HASHES|Hash mismatch")


class Unavailable(Exception):
    """A version cannot be had here; the text says why."""


class WrongHash(Exception):
    """Something was fetched that is not what was pinned; the text names it."""


def prepare_python(version: str) -> Path:
    """Return the interpreter of an environment of this version, made at first. Raises Unavailable or WrongHash."""
    folder, lock = FOLDER / f"python{version}", Path("requirements/dev.txt")
    stamp, python = folder / ".with-dev", folder / "bin" / "python"
    if stamp.exists() and stamp.stat().st_mtime >= lock.stat().st_mtime:
        return python
    interpreter = find_interpreter(version)
    shutil.rmtree(folder, ignore_errors=True)
    run([interpreter, "-m", "venv", "--without-pip", folder])
    run([sys.executable, "-m", "pip", "--python", python, "install", "pip"])
    run([TOOLS / "install-pinned", folder, "dev"])
    stamp.touch()
    return python


def find_interpreter(version: str) -> Path:
    """Return an interpreter of this version, fetched if need be. Raises Unavailable or WrongHash."""
    command = [TOOLS / "install-python", ".tools/python", version]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stderr.strip()
    if done.returncode == 2:
        raise WrongHash(said)
    if done.returncode:
        raise Unavailable(said.partition("is left out: ")[2] or said)
    return Path(done.stdout.strip())


def run(command: list[str | Path]) -> None:
    """Run a step of the installation. Raises Unavailable with its last line, or WrongHash with all of it."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode and WRONG_HASH.search(done.stdout):
        raise WrongHash(done.stdout.strip())
    if done.returncode:
        raise Unavailable(f"its environment could not be made: {done.stdout.strip().rpartition(chr(10))[2]}")
