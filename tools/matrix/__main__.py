"""Runs the legs one after the other, and says at the end which of them ran. `tools/test-matrix` starts it."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from matrix.legs import LEAST, Leg, list_legs
from support.postgres.servers import find_programs

TOOLS = Path("tools")
FOLDER = Path(".tools/matrix")
WRONG_HASH = re.compile("DO NOT MATCH THE HASHES|Hash mismatch|a wrong hash")
"""What pip, uv and tools/install-python say of what is not what was pinned."""
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"


def main() -> int:
    """Run the matrix, say what ran, which .ci/run repeats, and return the exit status."""
    arguments = [one for one in sys.argv[1:] if one != "--short"]
    lines, status = run_matrix(arguments, short="--short" in sys.argv[1:2])
    print("\n".join(f"· {line}" for line in lines))
    return status


def run_matrix(arguments: list[str], *, short: bool) -> tuple[list[str], int]:
    """Fetch what each leg takes and run it; return what to say of them, and the exit status."""
    pythons, ran, lines, status = {OWN: Path(sys.executable)}, 0, list[str](), 0
    for leg in list_legs(OWN):
        status |= add_python(leg.python, pythons) | add_postgres(leg.postgres)
        if leg.python not in pythons or int(leg.postgres) not in find_programs():
            continue
        print(f"· tests with {leg}", flush=True)
        started = time.monotonic()
        failed = run_leg(leg, pythons[leg.python], arguments, short=short)
        lines.append(f"{leg}: {'FAILED' if failed else 'passed'} in {time.monotonic() - started:.0f} s")
        ran, status = ran + 1, status | failed
    if ran < LEAST:
        lines.append(f"Too few versions ran, {ran} of at least {LEAST}: see the lines NOT RUN, install Maven and Go")
        status = 1
    return lines, status


def add_python(version: str, found: dict[str, Path]) -> int:
    """Add an interpreter with the packages of the tests if it can be had here; return 1 if a hash was wrong."""
    if version in found:
        return 0
    part = f"Python {version}"
    try:
        found[version] = prepare_python(version)
    except subprocess.CalledProcessError as failure:
        words = f"{failure.stdout}{failure.stderr}".strip()
        if WRONG_HASH.search(words):
            print(f"{part}: {words}", file=sys.stderr)
            return 1
        reason = words.partition("is left out: ")[2] or words.rpartition("\n")[2]
        subprocess.run([TOOLS / "not-run", part, reason], check=True)
    else:
        subprocess.run([TOOLS / "not-run", part], check=True)
    return 0


def prepare_python(version: str) -> Path:
    """Return the interpreter of an environment of this version, made at first. Raises CalledProcessError."""
    folder, lock = FOLDER / f"python{version}", Path("requirements/dev.txt")
    stamp, python = folder / ".with-dev", folder / "bin" / "python"
    if not stamp.exists() or stamp.stat().st_mtime < lock.stat().st_mtime:
        interpreter = ask(TOOLS / "install-python", ".tools/python", version).strip()
        shutil.rmtree(folder, ignore_errors=True)
        ask(interpreter, "-m", "venv", "--without-pip", folder)
        ask(sys.executable, "-m", "pip", "--python", python, "install", "pip")
        ask(TOOLS / "install-pinned", folder, "dev")
        stamp.touch()
    return python


def ask(*command: str | Path) -> str:
    """Run a step of an installation and return what it prints. Raises CalledProcessError with its words."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def add_postgres(version: str) -> int:
    """Fetch this version if the tests do not find it here; return 1 if a hash was wrong."""
    if int(version) in find_programs():
        return 0
    return int(subprocess.run([TOOLS / "install-postgres", ".tools/postgres", version], check=False).returncode != 0)


def run_leg(leg: Leg, python: Path, arguments: list[str], *, short: bool) -> int:
    """Run the tests of a leg; return 0 when all of them passed, and 1 otherwise."""
    chosen = ["-m", f"{leg.mark} and not soak", *list_files(leg.mark)] if short else []
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, *chosen]
    environment = {**os.environ, "ROWFERRY_TEST_POSTGRES": leg.postgres}
    return int(subprocess.run(command, env=environment, check=False).returncode != 0)


def list_files(mark: str) -> list[str]:
    """Return the files with tests of the short matrix: collecting all of them takes longer than some legs."""
    files = sorted(Path("tests").rglob("test_*.py"))
    return [str(file) for file in files if f"pytest.mark.{mark}" in file.read_text(encoding="utf-8")]


if __name__ == "__main__":
    sys.exit(main())
