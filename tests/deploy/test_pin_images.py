"""tools/pin-images names each image of others that only a tag names, and pins it by what a registry says."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.checkout import ROOT

FILES = ("compose.yaml", "worker/Dockerfile", "tools/pin-images")
DIGEST = "sha256:" + "ab" * 32
IMAGES = {"postgres", "chrislusf/seaweedfs", "prom/prometheus", "grafana/grafana", "python"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that name images, as if none of them was pinned."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in FILES[:2]:
        lines = (tmp_path / name).read_text().splitlines(keepends=True)
        (tmp_path / name).write_text("".join(f"{line.partition('@sha256:')[0].rstrip()}\n" for line in lines))
    return tmp_path


def run(checkout: Path, *arguments: str, docker: str = "exit 1") -> subprocess.CompletedProcess[str]:
    """Run it with a `docker` that does this."""
    programs = checkout / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "docker").write_text(f"#!/bin/sh\n{docker}\n")
    (programs / "docker").chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    command = [checkout / "tools" / "pin-images", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_tag_without_a_digest_is_named_until_the_registry_was_asked(checkout: Path) -> None:
    before = run(checkout, "--check")
    named = [line.partition(" names ")[2].partition(":")[0] for line in before.stdout.splitlines()]
    assert (before.returncode, set(named), len(named)) == (1, IMAGES, len(IMAGES))
    assert run(checkout, docker=f"echo {DIGEST}").returncode == 0
    after = run(checkout, "--check")
    assert (after.returncode, after.stdout) == (0, "")
    assert f"    image: postgres:17.6-bookworm@{DIGEST}\n" in (checkout / "compose.yaml").read_text()
    assert "  image: rowferry:" in (checkout / "compose.yaml").read_text()


@pytest.mark.parametrize("docker", ["echo no such host >&2; exit 1", "echo nonsense"])
def test_without_a_registry_nothing_is_written_and_one_sentence_is_said(checkout: Path, docker: str) -> None:
    before = [(checkout / name).read_text() for name in FILES]
    done = run(checkout, docker=docker)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("No digest of postgres:")
    assert [(checkout / name).read_text() for name in FILES] == before
