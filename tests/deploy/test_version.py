"""One version: that of pyproject.toml. Everything else that names it is held to it."""

import subprocess

import pytest

from rowferry import __version__
from support.docs.doc_pages import ROOT


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no git checkout")
def test_every_place_names_the_version_of_the_project() -> None:
    for arguments, said in ((), f"{__version__}\n"), (("--check",), ""):
        command = [ROOT / "tools" / "version", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
