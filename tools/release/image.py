"""The container image, where a Docker engine runs."""

import shutil

from release.steps import ask, step

IMAGE_SECONDS = 1800


def build_image() -> bool:
    """Have `make image` build it; return whether it did. Raises StepFailed."""
    if shutil.which("docker") is None or ask("docker", "info").returncode:
        print("· no Docker engine runs here: the image is left out", flush=True)
        return False
    step("make image", "make", "image", seconds=IMAGE_SECONDS)
    return True
