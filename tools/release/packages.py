"""The source archives, wheels and documents: the same bytes each time, and each wheel built from its source archive."""

import gzip
import hashlib
import shutil
import tarfile
import tempfile
from pathlib import Path

from release.readiness import Release
from release.steps import PYTHON, ROOT, StepFailed, step

SUMS = "SHA256SUMS"
PROJECTS = {"rowferry": ROOT, "rowferry_lab": ROOT / "lab"}
DOCUMENTS_SECONDS = 900
FOLDERS = ("site", "man")
"""What `make docs` leaves in build/."""
CACHES = {".doctrees", ".buildinfo", ".buildinfo.bak"}


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


def archive_documents(release: Release, dist: Path) -> None:
    """Have `make docs` build them anew and pack them. Raises StepFailed."""
    # Sphinx keeps the words of pages as they once were in its search index.
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    step("make docs", "make", "docs", seconds=DOCUMENTS_SECONDS, environment={"SOURCE_DATE_EPOCH": release.epoch})
    name = f"rowferry-{release.version}-docs"
    pack(dist / f"{name}.tar.gz", name, [ROOT / "build" / folder for folder in FOLDERS], int(release.epoch))


def pack(archive: Path, top: str, folders: list[Path], seconds: int) -> None:
    """Write an archive of folders below `top`: files in order, nobody's, all of one time (seconds since 1970).

    Raises StepFailed where a folder is not there.
    """

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = seconds
        member.mode = 0o755 if member.isdir() else 0o644
        return member

    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=seconds) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as files,
    ):
        for folder in folders:
            if not folder.is_dir():
                raise StepFailed(f"{folder} is not there, so {archive.name} would lack it.")
            for path in sorted(folder.rglob("*")):
                if not CACHES & set(path.parts) and path.is_file():
                    files.add(path, f"{top}/{folder.name}/{path.relative_to(folder)}", recursive=False, filter=plain)


def write_sums(dist: Path) -> None:
    """Write the digest of each file in the folder, in the form that `sha256sum --check` reads."""
    files = sorted(path for path in dist.iterdir() if path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (dist / SUMS).write_text("".join(lines), encoding="ascii")
