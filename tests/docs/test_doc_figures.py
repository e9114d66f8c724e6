"""What the docs say of speed is what was measured."""

import json
import re

import pytest

from bench.headlines import HEADLINES
from bench.page import find_answer, read_results, write_number
from support.docs.doc_pages import ROOT, read_table

pytestmark = pytest.mark.texts


def test_every_question_of_the_page_of_speed_is_answered_by_a_measurement() -> None:
    results = read_results()
    assert all(find_answer(headline, results) for headline in HEADLINES)
    told = [(row[0], row[1]) for row in read_table(ROOT / "docs" / "speed.md", "How fast is it?")]
    assert told == [(headline.question, find_answer(headline, results)) for headline in HEADLINES]


def test_the_readme_compares_the_paces_that_were_measured() -> None:
    rows = {row[0]: row[1:] for row in read_table(ROOT / "README.md", "Compared with other tools")}
    for what, bench, figure, contestants in (
        (
            "small objects/s, copied within a server",
            "copy",
            "entries_per_second",
            ("rowferry", "rclone", "rclone unchecked", "s5cmd"),
        ),
        (
            "100 MB objects, MB/s, between two servers",
            "stream",
            "megabytes_per_second",
            ("rowferry, 100 MB", "rclone, 100 MB", "rclone unchecked, 100 MB"),
        ),
    ):
        summary = json.loads((ROOT / "bench" / "results" / f"{bench}.json").read_text())["summary"]
        told = re.findall(r"[\d,]*\d", " ".join(rows[what]))
        assert told == [write_number(summary[contestant][figure]["median"]) for contestant in contestants]
