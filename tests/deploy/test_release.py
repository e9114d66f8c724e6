"""No more is promised than is tested, and the addresses of the project lead somewhere."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from matrix.legs import EMBEDDED, POSTGRES, PYTHONS
from rowferry.db.connection import OLDEST_POSTGRES
from support.docs.doc_pages import ROOT

pytestmark = pytest.mark.texts


def read_project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


PROJECT = read_project(ROOT)


def promised_pythons() -> set[str]:
    return {found[1] for name in PROJECT["classifiers"] if (found := re.fullmatch(r".* :: Python :: (3\.\d+)", name))}


def test_the_addresses_of_the_project_lead_to_files_that_are_here() -> None:
    urls = PROJECT["urls"]
    assert read_project(ROOT / "lab")["urls"] == urls
    paths = [found[1] for url in urls.values() if (found := re.search(r"/(?:blob|tree)/main/(.+)$", url))]
    assert len(paths) == 2
    assert all((ROOT / path).exists() for path in paths)


def test_each_promised_python_is_in_the_matrix_and_the_oldest_is_the_least() -> None:
    assert promised_pythons() == {*PYTHONS}
    pinned = set(re.findall(r" v0\.0\.0-(3\.\d+)\.", (ROOT / "requirements" / "pythons.sum").read_text()))
    assert pinned == promised_pythons()
    oldest = min(promised_pythons(), key=lambda version: int(version.partition(".")[2]))
    assert PROJECT["requires-python"] == f">={oldest}"


def test_each_pinned_postgresql_is_in_the_matrix_from_the_oldest_that_is_served() -> None:
    pins = (ROOT / "requirements" / "postgres.sum").read_text()
    pinned = sorted(map(int, set(re.findall(r"^linux-amd64 (\d\d)\.", pins, re.MULTILINE))))
    assert pinned == list(range(OLDEST_POSTGRES, pinned[-1] + 1))
    assert pinned == sorted(map(int, (*POSTGRES, EMBEDDED)))
