"""The README tells how long a migration takes, and docs/speed.md names the commits of what was measured."""

import re

import pytest

from support.docs.doc_pages import ROOT, read_section, read_table

pytestmark = pytest.mark.texts

SPEED = ROOT / "docs" / "speed.md"
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


def test_each_table_of_measurements_names_its_commit(subtests: pytest.Subtests) -> None:
    for heading in ("How fast is it?", "Streams between two servers", "A hundred million entries"):
        with subtests.test(heading):
            assert re.search(r"commit `[0-9a-f]{8}`", " ".join(read_section(SPEED, heading).split()))
