"""The digests of what was made, and the commands that publish it."""

import hashlib
from os.path import relpath
from pathlib import Path

from release.packages import list_packages
from release.readiness import Release
from release.steps import PYTHON, ROOT

SUMS = "SHA256SUMS"


def write_sums(dist: Path) -> None:
    """Write the digest of each file in the folder, in the form that `sha256sum --check` reads."""
    files = sorted(path for path in dist.iterdir() if path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (dist / SUMS).write_text("".join(lines), encoding="ascii")


def describe_publishing(release: Release, dist: Path, *, has_image: bool) -> str:
    """Return the commands that publish it, none of which has run."""
    packages = " ".join(relpath(path, ROOT) for path in list_packages(release, dist))
    commands = [
        f'git tag --annotate {release.tag} --message "rowferry {release.version}" {release.commit[:12]}',
        f"git push origin {release.tag}",
        f"{relpath(PYTHON.with_name('twine'), ROOT)} upload {packages}",
    ]
    if has_image:
        commands += [
            f"docker tag rowferry:{release.version} registry.example.com/rowferry:{release.version}",
            f"docker push registry.example.com/rowferry:{release.version}",
        ]
    title = "\nNothing is published yet. These commands do it:"
    if not release.is_dated:
        title = (
            f"\nThis is a rehearsal: CHANGELOG.md has no day for {release.version}. Write the day instead of\n"
            "unreleased, commit, and run make release again. Then these commands publish it:"
        )
    return "\n".join([title, *(f"  {command}" for command in commands)])
