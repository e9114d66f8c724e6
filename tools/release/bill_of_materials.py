"""The bill of materials (SBOM, CycloneDX): rowferry and the pinned packages it runs with, with their licenses."""

import platform
import tempfile
from pathlib import Path

from release.installs import Trial, make_empty
from release.readiness import Release
from release.steps import PYTHON, ROOT, step

SPECIFICATION = "1.6"


def write_bill(release: Release, dist: Path) -> None:
    """Write the bill of what requirements/worker.txt pins, as the image has it; the same bytes each time.

    It is of this interpreter and platform: another may take a package more, or less. cyclonedx-py holds it against the
    schema of the specification before it writes it. Raises StepFailed.
    """
    version = ".".join(platform.python_version_tuple()[:2])
    target = dist / f"rowferry-{release.version}.cdx.json"
    with tempfile.TemporaryDirectory() as scratch:
        venv = Path(scratch, "venv")
        offline = make_empty(venv, Path(scratch, "wheels"), Trial(version, PYTHON, "worker"))
        # By name: a path would be written down, and differ from machine to machine.
        wanted = f"rowferry[inspect]=={release.version}"
        step("installing what an image has", *offline, "--find-links", dist, wanted)
        form = ("--spec-version", SPECIFICATION, "--output-format", "JSON", "--output-reproducible", "--validate")
        root = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "application")
        command = (PYTHON.with_name("cyclonedx-py"), "environment", venv, *root, *form, "--output-file", target)
        step(f"writing {target.name}", *command, environment={"SOURCE_DATE_EPOCH": release.epoch})
