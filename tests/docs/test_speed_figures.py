"""The README compares the paces that docs/speed.md has, on the server where rowferry does worst, with their commits."""

import re

import pytest

from support.docs.doc_pages import ROOT, read_section, read_table

pytestmark = pytest.mark.texts

SPEED = ROOT / "docs" / "speed.md"
ROWS = {
    "small objects/s, copied within a server": ("How fast is it?", ["versitygw, a real server"]),
    "100 MB objects, MB/s, between two servers": ("Streams between two servers", ["100 MB", "fake"]),
    "1 GB objects, MB/s, between two servers": ("Streams between two servers", ["1 GB", "stub, TLS"]),
}
"""Each row of the README, the section of the page, and the cells that its row begins with."""


def list_figures(cells: list[str]) -> list[float]:
    return [float(number.replace(",", "")) for cell in cells for number in re.findall(r"\d[\d,.]*", cell)]


def test_the_readme_compares_the_paces_that_were_measured(subtests: pytest.Subtests) -> None:
    shown = {row[0]: row[1:] for row in read_table(ROOT / "README.md", "Compared with other tools")}
    for name, (heading, begin) in ROWS.items():
        with subtests.test(name):
            (measured,) = [row for row in read_table(SPEED, heading) if row[: len(begin)] == begin]
            figures = list_figures(shown[name])
            assert figures
            assert figures == list_figures(measured[len(begin) :])[: len(figures)]


def test_each_table_of_measurements_names_its_commit(subtests: pytest.Subtests) -> None:
    for heading in ("How fast is it?", "Streams between two servers", "A hundred million entries"):
        with subtests.test(heading):
            assert re.search(r"commit `[0-9a-f]{8}`", " ".join(read_section(SPEED, heading).split()))
