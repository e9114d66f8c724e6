"""Installs the wheels as a stranger does: into empty environments, to run what is in them and to list it."""

import platform
import tempfile
from pathlib import Path
from typing import NamedTuple

from release.packages import find_wheel
from release.readiness import Release
from release.steps import PYTHON, ROOT, StepFailed, ask, step

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
WRONG_HASH = 2
"""The exit status of tools/install-python for what is not what was pinned."""
FETCH_SECONDS = 600
DEMO_SECONDS = 300
BILL_FORM = ("--spec-version", "1.6", "--output-format", "JSON", "--output-reproducible", "--validate")
"""Of the bill of materials (SBOM, CycloneDX)."""


class Trial(NamedTuple):
    """A version of Python, and the lock file of requirements/ whose packages are taken."""

    version: str
    interpreter: Path
    lock: str

    def __str__(self) -> str:
        return f"Python {self.version}, {self.lock}.txt"


def try_installs(release: Release, dist: Path) -> list[str]:
    """Return the versions of Python that the wheels were tried with: those to be had here. Raises StepFailed."""
    tried: list[str] = []
    for version in VERSIONS:
        interpreter = find_interpreter(version)
        if interpreter is not None:
            for lock in ("demo", "oldest") if version == VERSIONS[0] else ("demo",):
                with tempfile.TemporaryDirectory() as scratch:
                    try_install(release, dist, Path(scratch), Trial(version, interpreter, lock))
            tried.append(version)
    if not tried:
        raise StepFailed("no Python 3.11 to 3.14 was found to try the wheels with.")
    return tried


def find_interpreter(version: str) -> Path | None:
    """Return an interpreter of this version, fetched if need be; None where it cannot be had, which is said.

    Raises StepFailed for a wrong hash.
    """
    found = ask(ROOT / "tools" / "install-python", ROOT / ".tools" / "python", version, seconds=FETCH_SECONDS)
    if found.returncode == WRONG_HASH:
        raise StepFailed(found.stderr.strip())
    if found.returncode:
        print(found.stderr.strip(), flush=True)
        return None
    return Path(found.stdout.strip())


def try_install(release: Release, dist: Path, scratch: Path, trial: Trial) -> None:
    """Install rowferry alone, then with the extra demo, and run the demo. Raises StepFailed."""
    venv, wheels = scratch / "venv", scratch / "wheels"
    offline = make_empty(venv, wheels, trial)
    step(f"{trial}: installing rowferry", *offline, find_wheel(dist, "rowferry", release))
    require_rowferry_alone(release, venv / "bin" / "rowferry", scratch)
    demo = f"rowferry[demo]=={release.version}"
    step(f"{trial}: installing the extra demo", *offline, "--find-links", dist, demo)
    step(f"{trial}: pip check", PYTHON, "-m", "pip", "--python", venv / "bin" / "python", "check")
    command = (venv / "bin" / "rowferry", "demo", "--entries", 400, "--workers", 2)
    step(f"{trial}: rowferry demo", *command, cwd=scratch, seconds=DEMO_SECONDS)


def make_empty(venv: Path, wheels: Path, trial: Trial) -> tuple[object, ...]:
    """Make an empty environment and a folder of wheels; return the command that installs from it, without network.

    The wheels are those that the lock file pins, each checked against its hash.
    """
    pip = (PYTHON, "-m", "pip", "--python", venv / "bin" / "python")
    lock = ("--require-hashes", "--only-binary", ":all:", "--requirement", ROOT / "requirements" / f"{trial.lock}.txt")
    step(f"{trial}: making an empty environment", trial.interpreter, "-m", "venv", "--without-pip", venv)
    step(f"{trial}: fetching packages", *pip, "download", *lock, "--dest", wheels, seconds=FETCH_SECONDS)
    return (*pip, "install", "--no-index", "--find-links", wheels)


def require_rowferry_alone(release: Release, rowferry: Path, folder: Path) -> None:
    """Run what needs no server. Raises StepFailed when an answer is not that of a whole package."""
    if (shown := ask(rowferry, "--version", cwd=folder).stdout) != f"rowferry {release.version}\n":
        raise StepFailed(f"rowferry --version says {shown.strip()!r} instead of {release.version}.")
    if "[[entries]]" not in ask(rowferry, "plan", "--example", cwd=folder).stdout:
        raise StepFailed("rowferry plan --example shows no plan.")
    refused = ask(rowferry, "demo", cwd=folder)
    if refused.returncode != 2 or refused.stderr.count("\n") != 1 or "pip install" not in refused.stderr:
        raise StepFailed(f"rowferry demo without its extra does not say what to install: {refused.stderr}")


def write_bill(release: Release, dist: Path) -> None:
    """Write the bill of materials: rowferry and what requirements/worker.txt pins, as the image has it.

    It has the same bytes each time, for this interpreter and platform: another may take a package more, or less.
    cyclonedx-py holds it against the schema of the specification before it writes it. Raises StepFailed.
    """
    version = ".".join(platform.python_version_tuple()[:2])
    target = dist / f"rowferry-{release.version}.cdx.json"
    with tempfile.TemporaryDirectory() as scratch:
        venv = Path(scratch, "venv")
        offline = make_empty(venv, Path(scratch, "wheels"), Trial(version, PYTHON, "worker"))
        # By name: a path would be written down, and differ from machine to machine.
        wanted = f"rowferry[inspect]=={release.version}"
        step("installing what an image has", *offline, "--find-links", dist, wanted)
        root = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "application")
        command = (PYTHON.with_name("cyclonedx-py"), "environment", venv, *root, *BILL_FORM, "--output-file", target)
        step(f"writing {target.name}", *command, environment={"SOURCE_DATE_EPOCH": release.epoch})
