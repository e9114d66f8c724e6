"""The container image, where a Docker engine runs."""

import re
import shutil

from release.steps import ROOT, ask, step

IMAGE_SECONDS = 1800


def build_image() -> bool:
    """Have `make image` build it; return whether it did. Raises StepFailed."""
    if not re.search(r"^image:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE):
        return False
    if shutil.which("docker") is None or ask("docker", "info").returncode:
        print("· no Docker engine runs here: the image is left out", flush=True)
        return False
    step("make image", "make", "image", seconds=IMAGE_SECONDS)
    return True
