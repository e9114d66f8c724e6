"""Each of the eleven points of docs/compliance.md names what shows it, and all that it names is there."""

import re
import subprocess

import pytest

from doc_pages import ROOT, read_section
from test_docs import list_make_targets, parse_command

PAGE = ROOT / "docs" / "compliance.md"
TITLES = re.findall(r"^## (\d+\. .+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def read_proofs(title: str) -> list[str]:
    """Return the commands and paths that a point lists below `Shown by:`."""
    listed = read_section(PAGE, title).partition("Shown by:\n")[2]
    return [
        code for item in re.findall(r"^- (.+)$", listed, re.MULTILINE) for code in re.findall(r"`([^`]+)`", item)[:2]
    ]


def test_there_are_eleven_points() -> None:
    assert [int(title.split(".")[0]) for title in TITLES] == list(range(1, 12))


@pytest.mark.parametrize("title", TITLES)
def test_all_that_shows_a_point_is_there(title: str) -> None:
    proofs = read_proofs(title)
    assert len(proofs) >= 2
    for proof in proofs:
        program, *words = proof.split()
        match program:
            case "rowferry":
                parse_command(words)
            case "make":
                assert set(words) <= list_make_targets(), proof
            case "git":
                assert subprocess.run(proof.split(), cwd=ROOT, capture_output=True, check=False).returncode in {0, 128}
            case _ if program.startswith("--"):
                assert f"`{program}`" in read_section(PAGE, title)
            case _:
                assert (ROOT / proof).exists(), f"{proof} is not there"


def test_tests_that_are_named_hold_tests() -> None:
    named = {proof for title in TITLES for proof in read_proofs(title) if proof.startswith("tests/")}
    assert named
    for path in named:
        assert re.search(r"^def test_", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), path
