"""Runs the legs one after the other, and says at the end which of them ran. `tools/test-matrix` starts it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from matrix.interpreters import FOLDER, TOOLS, Unavailable, WrongHash, prepare_python
from matrix.legs import FULL, SHORT, Leg, Pair, choose_legs, judge_matrix
from support.postgres.servers import find_programs

OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
SUMMARY = FOLDER / "summary"
"""What ran, for the summary of .ci/run."""


def main() -> int:
    """Run the matrix and return the exit status."""
    short, arguments = sys.argv[1:2] == ["--short"], [one for one in sys.argv[1:] if one != "--short"]
    ahead = ThreadPoolExecutor(1)
    try:
        lines, status = run_matrix(ahead, arguments, short=short)
    finally:
        ahead.shutdown(cancel_futures=True)
    SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print("\n".join(f"· {line}" for line in lines))
    return status


def run_matrix(ahead: ThreadPoolExecutor, arguments: list[str], *, short: bool) -> tuple[list[str], int]:
    """Run each leg as soon as what it takes is here; return what to say of them, and the exit status."""
    here, ran, lines, status = Here(), list[Leg](), list[str](), 0
    pairs = prepare_ahead(ahead, SHORT if short else FULL, here)
    for leg in choose_legs(pairs, short=short, pythons=here.pythons, versions=here.versions, own=OWN):
        print(f"· tests with {leg}", flush=True)
        started = time.monotonic()
        failed = run_leg(leg, here.pythons[leg.python], arguments)
        lines.append(f"{leg}: {'FAILED' if failed else 'passed'} in {time.monotonic() - started:.0f} s")
        ran.append(leg)
        status |= failed
    if complaint := judge_matrix(ran):
        lines.append(complaint)
        status = 1
    return lines, status | here.status


@dataclass
class Here:
    """What of Python and PostgreSQL is here by now. `status` is 1 if a hash was wrong."""

    pythons: dict[str, Path] = field(default_factory=lambda: {OWN: Path(sys.executable)})
    versions: set[str] = field(default_factory=set[str])
    status: int = 0


def prepare_ahead(ahead: ThreadPoolExecutor, pairs: Sequence[Pair], here: Here) -> Iterator[Pair]:
    """Yield each pair when all of it that can be had is here; the next ones are prepared meanwhile."""
    made = [ahead.submit(prepare, *pair, here) for pair in pairs]
    for pair, one in zip(pairs, made, strict=True):
        one.result()
        yield pair


def prepare(python: str, postgres: str, here: Here) -> None:
    """Fetch what is not here yet."""
    if python not in here.pythons:
        here.status |= add_python(python, here.pythons)
    if postgres not in here.versions:
        here.status |= add_postgres(postgres, here.versions)


def add_python(version: str, found: dict[str, Path]) -> int:
    """Add an interpreter of this version if it can be had here; return 1 if a hash was wrong."""
    part = f"Python {version}"
    try:
        found[version] = prepare_python(version)
    except Unavailable as reason:
        subprocess.run([TOOLS / "not-run", part, str(reason)], check=True)
    except WrongHash as reason:
        print(f"{part}: {reason}", file=sys.stderr)
        return 1
    else:
        subprocess.run([TOOLS / "not-run", part], check=True)
    return 0


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
