"""README and docs/size.md tell hours and dollars, docs/internals/measurements.md the commits of what was measured."""

import re

import pytest

from rowferry.s3.providers import list_providers
from support.docs.doc_pages import ROOT, read_section, read_table

pytestmark = pytest.mark.texts

SIZE = ROOT / "docs" / "size.md"
SPEED = ROOT / "docs" / "internals" / "measurements.md"
MOVES = [
    # millions of objects, bytes each, reads of the legacy and of the production side, from, to
    (10, 0, 0, 0, "aws", "aws"),
    (80, 60e3, 1, 0, "aws", "r2"),
    (1, 20e6, 1, 1, "aws", "r2"),
]
"""The examples of docs/size.md; a copy within a server reads no byte."""
UNITS = {"minutes": 60.0, "hours": 3600.0, "days": 86400.0}


def read_seconds(cell: str) -> float:
    number, unit = cell.split()
    return float(number) * UNITS[unit]


def test_the_readme_tells_hours_by_the_limit_of_the_provider(subtests: pytest.Subtests) -> None:
    """A copy is one write: objects over writes a second, to two digits."""
    shown = read_table(ROOT / "README.md", "How long it takes")
    assert len(shown) == 4
    for objects, *cells in shown:
        millions = float(objects.split()[0].replace(",", ""))
        for rate, cell in zip((1000, 3500), cells, strict=True):
            with subtests.test(f"{objects} at {rate}"):
                assert read_seconds(cell) == pytest.approx(millions * 1e6 / rate, rel=0.05)


def test_the_examples_cost_what_the_providers_charge(subtests: pytest.Subtests) -> None:
    shown = read_table(SIZE, "Three examples in dollars")
    for (millions, size, reads, looks, source, target), (name, *cells) in zip(MOVES, shown, strict=True):
        legacy, production = list_providers()[source], list_providers()[target]
        egress = millions * 1e6 * size / 1e9 * (legacy.egress or 0)
        read = millions * 1e3 * (reads * (legacy.reads or 0) + looks * (production.reads or 0))
        wrote = millions * 1e3 * (production.writes or 0)
        told = [float(cell.strip("$").replace(",", "")) for cell in cells]
        with subtests.test(name):
            assert told == pytest.approx([egress, read, wrote, egress + read + wrote], rel=0.01)


def test_each_table_of_measurements_names_its_commit(subtests: pytest.Subtests) -> None:
    for heading in ("How fast is it?", "Streams between two servers", "A hundred million entries"):
        with subtests.test(heading):
            assert re.search(r"commit `[0-9a-f]{8}`", " ".join(read_section(SPEED, heading).split()))
