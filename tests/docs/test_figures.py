"""The figures of README and of the page of measurements are those of bench/results."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.record import RESULTS
from bench.tables import README, SHOWN, TABLES, Figures, replace_table, tabulate

pytestmark = pytest.mark.texts


@pytest.mark.parametrize(("path", "bench", "name", "write"), TABLES, ids=lambda value: str(getattr(value, "name", "")))
def test_a_table_of_a_page_tells_what_was_measured(
    path: Path, bench: str, name: str, write: Callable[[Figures], str]
) -> None:
    record = json.loads((RESULTS / f"{bench}.json").read_text(encoding="utf-8"))
    table = tabulate(record, write, SHOWN if path == README else None)
    page = path.read_text(encoding="utf-8")
    assert replace_table(page, name, table) == page, "run `make figures`"
    assert record["how"] != "short"
