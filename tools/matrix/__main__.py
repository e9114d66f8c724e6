"""Runs the legs one after the other, and says at the end which of them ran. `tools/test-matrix` starts it."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from matrix.legs import FULL, SHORT, Leg, choose_legs, judge_matrix
from support.postgres.servers import find_programs

TOOLS = Path("tools")
FOLDER = Path(".tools/matrix")
WRONG_HASH = re.compile("DO NOT MATCH THE HASHES|Hash mismatch|a wrong hash")
"""What pip, uv and tools/install-python say of what is not what was pinned."""
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
SUMMARY = FOLDER / "summary"
"""What ran, for the summary of .ci/run."""


def main() -> int:
    """Run the matrix and return the exit status."""
    arguments = [one for one in sys.argv[1:] if one != "--short"]
    lines, status = run_matrix(arguments, short="--short" in sys.argv[1:2])
    SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print("\n".join(f"· {line}" for line in lines))
    return status


def run_matrix(arguments: list[str], *, short: bool) -> tuple[list[str], int]:
    """Fetch what each leg takes and run it; return what to say of them, and the exit status."""
    pythons, versions, ran, lines, status = {OWN: Path(sys.executable)}, set[str](), list[Leg](), list[str](), 0
    pairs = SHORT if short else FULL
    for python, postgres in pairs:
        status |= 0 if python in pythons else add_python(python, pythons)
        status |= 0 if postgres in versions else add_postgres(postgres, versions)
    for leg in choose_legs(pairs, short=short, pythons=pythons, versions=versions, own=OWN):
        print(f"· tests with {leg}", flush=True)
        started = time.monotonic()
        failed = run_leg(leg, pythons[leg.python], arguments)
        lines.append(f"{leg}: {'FAILED' if failed else 'passed'} in {time.monotonic() - started:.0f} s")
        ran.append(leg)
        status |= failed
    if complaint := judge_matrix(ran):
        lines.append(complaint)
        status = 1
    return lines, status


def add_python(version: str, found: dict[str, Path]) -> int:
    """Add an interpreter with the packages of the tests if it can be had here; return 1 if a hash was wrong."""
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


def add_postgres(version: str, found: set[str]) -> int:
    """Add this version if the tests find it here, fetched if need be; return 1 if a hash was wrong."""
    done = 0
    if int(version) not in find_programs():
        done = subprocess.run([TOOLS / "install-postgres", ".tools/postgres", version], check=False).returncode
    found.update(str(version) for version in find_programs())
    return int(done != 0)


def run_leg(leg: Leg, python: Path, arguments: list[str]) -> int:
    """Run the tests of a leg; return 0 when all of them passed, and 1 otherwise."""
    chosen = ["-m", leg.marks, *list_files(leg.marks)] if leg.marks else []
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, *chosen]
    environment = {**os.environ, "ROWFERRY_TEST_POSTGRES": leg.postgres}
    return int(subprocess.run(command, env=environment, check=False).returncode != 0)


def list_files(marks: str) -> list[str]:
    """Return the files with tests of the short matrix: collecting all of them takes longer than some legs."""
    names = [f"pytest.mark.{name}" for name in ("versions", "pythons") if name in marks]
    files = sorted(Path("tests").rglob("test_*.py"))
    return [str(file) for file in files if any(name in file.read_text(encoding="utf-8") for name in names)]


if __name__ == "__main__":
    sys.exit(main())
