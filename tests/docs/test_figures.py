"""The figures of README and of the page of measurements are those of bench/results."""

import json

import pytest

from bench.record import RESULTS
from bench.tables import TABLES, compose_pages

pytestmark = pytest.mark.texts


def test_the_tables_of_the_pages_tell_what_was_measured() -> None:
    for path, page in compose_pages().items():
        assert page == path.read_text(encoding="utf-8"), "run `make figures`"


@pytest.mark.parametrize("bench", sorted({bench for _, bench, *_ in TABLES}))
def test_no_figure_is_of_a_run_that_says_nothing(bench: str) -> None:
    assert json.loads((RESULTS / f"{bench}.json").read_text(encoding="utf-8"))["how"] != "short"
