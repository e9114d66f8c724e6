"""The source archives and wheels: each wheel built from its source archive, the same bytes as from the checkout."""

import tarfile
import tempfile
from pathlib import Path

from release.readiness import Release
from release.steps import PYTHON, ROOT, StepFailed, step

PROJECTS = {"rowferry": ROOT, "rowferry_lab": ROOT / "lab"}


def build_packages(release: Release, dist: Path) -> None:
    """Put both source archives and both wheels into the folder. Raises StepFailed."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, project in PROJECTS.items():
            build_package(release, dist, Path(scratch), name, project)
    step("twine check", PYTHON, "-m", "twine", "check", "--strict", *list_packages(release, dist))


def build_package(release: Release, dist: Path, scratch: Path, name: str, project: Path) -> None:
    """Build one distribution, its wheel a second time from the checkout, and compare the two. Raises StepFailed."""
    epoch = {"SOURCE_DATE_EPOCH": release.epoch}
    stem = f"{name}-{release.version}"
    command = (PYTHON, "-m", "hatchling", "build", "--target")
    step(f"building {stem}.tar.gz", *command, "sdist", "--directory", dist, cwd=project, environment=epoch)
    with tarfile.open(dist / f"{stem}.tar.gz") as archive:
        archive.extractall(scratch, filter="data")
    unpacked, again = scratch / stem, scratch / "again"
    step("building the wheel from it", *command, "wheel", "--directory", dist, cwd=unpacked, environment=epoch)
    step(
        "building the wheel from the checkout", *command, "wheel", "--directory", again, cwd=project, environment=epoch
    )
    wheel = find_wheel(dist, name, release)
    if wheel.read_bytes() != (again / wheel.name).read_bytes():
        raise StepFailed(f"{wheel.name} from the source archive differs from that of the checkout.")


def find_wheel(dist: Path, name: str, release: Release) -> Path:
    """Return the wheel of a distribution."""
    return dist / f"{name}-{release.version}-py3-none-any.whl"


def list_packages(release: Release, dist: Path) -> list[Path]:
    """Return what a package index takes: of each distribution the source archive and the wheel."""
    return [
        path
        for name in PROJECTS
        for path in (dist / f"{name}-{release.version}.tar.gz", find_wheel(dist, name, release))
    ]
