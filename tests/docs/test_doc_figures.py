"""What the docs say of speed is what was measured."""

import pytest

from bench.headlines import HEADLINES, PaceRow
from bench.page import README, compose_row, fill_rows, find_answer, read_results
from support.docs.doc_pages import ROOT, read_table

pytestmark = pytest.mark.texts


def test_every_question_of_the_page_of_speed_is_answered_by_a_measurement() -> None:
    results = read_results()
    assert all(find_answer(headline, results) for headline in HEADLINES)
    told = [tuple(row[:3]) for row in read_table(ROOT / "docs" / "speed.md", "How fast is it?")]
    assert told == [(headline.question, *(find_answer(headline, results) or ())) for headline in HEADLINES]


def test_the_readme_compares_the_paces_that_were_measured() -> None:
    text = README.read_text(encoding="utf-8")
    assert fill_rows(text, read_results()) == text


def test_the_readme_compares_on_the_server_that_is_worst_for_us() -> None:
    row = PaceRow("paces", "copy", "against it", "pace", ("we", "they", "others"), "{} | {}; {}")
    figures = {"pace": {"median": 9.0}, "pace_start_included": {"median": 2.0}}
    target = {"what": "against it", "server": "stub, TLS, start included"}
    summary = {
        "we, fake": figures,
        "we, stub, TLS": figures,
        "they, stub, TLS": {"pace_start_included": {"median": 3.0}},
        "others, stub, TLS": {"pace": {"median": 5.0}},  # its start could not be told apart
    }
    assert compose_row(row, [{"name": "copy", "targets": [target], "summary": summary}]) == "| paces | 2 | **3**; – |"
