"""The wheels and source archives of rowferry and rowferry-lab, built without the network, and what is in them."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path

from support.docs.doc_pages import ROOT

EPOCH = "1700000000"
"""The moment that both builds of a test are told, in seconds since 1970."""


def run(*command: object, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    words = list(map(str, command))
    variables = {**os.environ, **environment}
    return subprocess.run(words, cwd=cwd, env=variables, capture_output=True, text=True, timeout=200, check=False)


def build(project: Path, folder: Path, *options: str) -> None:
    """Put the source archive and the wheel of a project into a folder; of options, `-t wheel` builds only that."""
    command = (sys.executable, "-m", "hatchling", "build", "--directory", folder, *options)
    done = run(*command, cwd=project, SOURCE_DATE_EPOCH=EPOCH)
    assert done.returncode == 0, done.stdout + done.stderr


def install(source: Path, target: Path) -> None:
    """Install a package into a folder with pip, without the network and what it needs."""
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    done = run(sys.executable, "-m", "pip", "install", *options, "--target", target, source)
    assert done.returncode == 0, done.stderr


def find(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a source archive into a folder; return the folder of the project."""
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def read_files(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file of a wheel or a source archive."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist())
        return
    with tarfile.open(archive) as source:
        for member in source:
            content = source.extractfile(member)
            if content is not None:
                yield member.name, content.read()


def read_metadata(wheel: Path) -> Message:
    """Return METADATA of a wheel; the long description is its payload."""
    (text,) = (content for name, content in read_files(wheel) if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(text.decode())
