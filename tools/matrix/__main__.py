"""Runs the legs one after the other, and says at the end which of them ran. `tools/test-matrix` starts it."""

import os
import subprocess
import sys
import time
from pathlib import Path

from matrix.interpreters import FOLDER, TOOLS, Unavailable, WrongHash, prepare_python
from matrix.legs import FULL, SHORT, Leg, choose_legs, judge_matrix
from support.postgres.servers import find_programs

OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
SUMMARY = FOLDER / "summary"
"""What ran, for the summary of .ci/run."""


def main() -> int:
    """Run the matrix and return the exit status."""
    short, arguments = sys.argv[1:2] == ["--short"], [one for one in sys.argv[1:] if one != "--short"]
    pairs = SHORT if short else FULL
    prepared, status = prepare_pythons([python for python, _ in pairs])
    versions, wrong = prepare_versions([version for _, version in pairs])
    legs = choose_legs(pairs, short=short, pythons=prepared, versions=versions, own=OWN)
    lines: list[str] = []
    for leg in legs:
        print(f"· tests with {leg}", flush=True)
        started = time.monotonic()
        failed = run_leg(leg, prepared[leg.python], arguments)
        lines.append(f"{leg}: {'FAILED' if failed else 'passed'} in {time.monotonic() - started:.0f} s")
        status |= wrong | failed
    if complaint := judge_matrix(legs):
        lines.append(complaint)
        status = 1
    SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print("\n".join(f"· {line}" for line in lines))
    return status | wrong


def prepare_pythons(versions: list[str]) -> tuple[dict[str, Path], int]:
    """Return the interpreter of each version that can be had here, and 1 if a hash was wrong."""
    found, status = {OWN: Path(sys.executable)}, 0
    for version in dict.fromkeys(versions):
        part = f"Python {version}"
        try:
            found[version] = found.get(version) or prepare_python(version)
        except Unavailable as reason:
            subprocess.run([TOOLS / "not-run", part, str(reason)], check=True)
        except WrongHash as reason:
            print(f"{part}: {reason}", file=sys.stderr)
            status = 1
        else:
            subprocess.run([TOOLS / "not-run", part], check=True)
    return found, status


def prepare_versions(versions: list[str]) -> tuple[set[str], int]:
    """Return the versions of PostgreSQL that the tests find here, fetched if need be, and 1 if a hash was wrong."""
    missing = [version for version in dict.fromkeys(versions) if int(version) not in find_programs()]
    done = subprocess.run([TOOLS / "install-postgres", ".tools/postgres", *missing], check=False)
    return {str(version) for version in find_programs()}, int(done.returncode != 0)


def run_leg(leg: Leg, python: Path, arguments: list[str]) -> int:
    """Run the tests of a leg; return 0 when all of them passed, and 1 otherwise."""
    chosen = ["-m", leg.marks, *list_files()] if leg.marks else []
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, *chosen]
    environment = {**os.environ, "ROWFERRY_TEST_POSTGRES": leg.postgres}
    return int(subprocess.run(command, env=environment, check=False).returncode != 0)


def list_files() -> list[str]:
    """Return the files with tests of the short matrix: collecting all of them takes longer than some legs."""
    marks = ("pytest.mark.versions", "pytest.mark.pythons")
    files = sorted(Path("tests").rglob("test_*.py"))
    return [str(file) for file in files if any(mark in file.read_text(encoding="utf-8") for mark in marks)]


if __name__ == "__main__":
    sys.exit(main())
