"""Make a release in a folder, which is emptied first: `python -m release dist`, from the top of the checkout.

Exit status 2: one sentence says what is in the way. 1: a step has failed, and has shown its output.
"""

import shutil
import sys
from os.path import relpath
from pathlib import Path

from release.installs import try_installs, write_bill
from release.packages import archive_documents, build_packages, list_packages, write_sums
from release.readiness import Refused, Release, read_release
from release.steps import PYTHON, ROOT, StepFailed, ask, step

IMAGE_SECONDS = 1800


def main() -> int:
    """Make everything, and return the exit status."""
    try:
        make(Path(sys.argv[1]).resolve())
    except (Refused, StepFailed) as reason:
        print(f"release: {reason}", file=sys.stderr)
        return 2 if isinstance(reason, Refused) else 1
    return 0


def make(dist: Path) -> None:
    """Fill the folder. Raises Refused or StepFailed."""
    release = read_release()
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    build_packages(release, dist)
    archive_documents(release, dist)
    tried = try_installs(release, dist)
    write_bill(release, dist)
    write_sums(dist)
    has_image = build_image()
    print(f"\nrowferry {release.version} of commit {release.commit[:12]}, tried with Python {', '.join(tried)}: {dist}")
    print(*(f"  {path.stat().st_size:>12,} bytes  {path.name}" for path in sorted(dist.iterdir())), sep="\n")
    print(describe_publishing(release, dist, has_image=has_image))


def build_image() -> bool:
    """Have `make image` build the container image where a Docker engine runs; return whether it did."""
    if shutil.which("docker") is None or ask("docker", "info").returncode:
        print("· no Docker engine runs here: the image is left out", flush=True)
        return False
    step("make image", "make", "image", seconds=IMAGE_SECONDS)
    return True


def describe_publishing(release: Release, dist: Path, *, has_image: bool) -> str:
    """Return the commands that publish it, none of which has run."""
    tag, packages = f"v{release.version}", " ".join(relpath(path, ROOT) for path in list_packages(release, dist))
    commands = [
        f'git tag --annotate {tag} --message "rowferry {release.version}" {release.commit[:12]}',
        f"git push origin {tag}",
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


if __name__ == "__main__":
    sys.exit(main())
