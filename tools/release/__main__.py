"""Make a release in a folder, which is emptied first: `python -m release dist`, from the top of the checkout.

Exit status 2: one sentence says what is in the way. 1: a step has failed, and has shown its output.
"""

import shutil
import sys
from pathlib import Path

from release.announce import describe_files, describe_publishing, write_sums
from release.bill_of_materials import write_bill
from release.documents import archive_documents
from release.image import build_image
from release.installs import try_installs
from release.packages import build_packages
from release.readiness import Refused, read_release
from release.steps import StepFailed


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
    image = build_image()
    print(describe_files(release, dist, tried, has_image=image))
    print(describe_publishing(release, dist, has_image=image))


if __name__ == "__main__":
    sys.exit(main())
