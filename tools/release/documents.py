"""The site of docs/ and the manual pages as one archive, the same bytes each time."""

import gzip
import shutil
import tarfile
from pathlib import Path

from release.readiness import Release
from release.steps import ROOT, StepFailed, step

DOCUMENTS_SECONDS = 900
FOLDERS = ("site", "man")
"""What `make docs` leaves in build/."""
CACHES = {".doctrees", ".buildinfo", ".buildinfo.bak"}


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
