"""Make a release in a folder, which is emptied first: `python -m release dist`, from the top of the checkout.

Exit status 2: one sentence says what is in the way. 1: a step has failed, and has shown its output.
"""

import shutil
import sys
from pathlib import Path

from release.announce import describe_publishing, write_sums
from release.documents import archive_documents
from release.installs import try_installs, write_bill
from release.packages import build_packages
from release.readiness import Refused, read_release
from release.steps import StepFailed, ask, step

IMAGE_SECONDS = 1800


def main() -> int:
    """Make everything, and return the exit status."""
    try:
        make(Path(sys.argv[1]).resolve())
    except Refused as reason:
        print(f"release: {reason}", file=sys.stderr)
        return 2
    except StepFailed as failure:
        print(f"release: {failure}", file=sys.stderr)
        return 1
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


if __name__ == "__main__":
    sys.exit(main())
