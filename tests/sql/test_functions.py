"""The head of each SQL function says what it writes and who calls it."""

import re

import pytest

from rowferry.db.statements import list_sql
from support.checkout import ROOT

pytestmark = pytest.mark.texts

FILES = {path.stem: path.read_text() for path in list_sql("functions")}


def check_writes_and_callers(name: str) -> None:
    header = FILES[name].partition("create or replace")[0]
    writes, _, callers = header.partition("Called by: ")
    assert "\n-- Writes: " in f"\n{writes}"
    for path in re.findall(r"[\w/]+\.py", callers):
        found = [
            file for folder in (".", "worker", "enqueue", "queues", "cli") if (file := ROOT / folder / path).is_file()
        ]
        assert found, f"there is no {path}"
        assert f'"{name}"' in found[0].read_text(), f"it is not called by {path}"
    for function in re.findall(r"rowferry\.(\w+)", callers):
        assert f"rowferry.{name}" in FILES[function].partition("create or replace")[2], (
            f"it is not called by {function}"
        )


def test_the_header_says_what_is_written_and_by_whom_it_is_called(subtests: pytest.Subtests) -> None:
    for name in FILES:
        with subtests.test(name):
            check_writes_and_callers(name)
