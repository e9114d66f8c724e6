"""The head of each SQL function says what it writes and who calls it, and its names are those of the house."""

import re

import pytest

from rowferry.db.statements import list_sql
from support.checkout import ROOT

pytestmark = pytest.mark.texts

FILES = {path.stem: path.read_text() for path in list_sql("functions")}
AGGREGATES = {name for name, text in FILES.items() if "create or replace aggregate" in text}
SIGNATURE = re.compile(r"create or replace function rowferry\.(\w+)\((.*?)\)\nreturns", re.DOTALL)
NAME = re.compile(r"(?:^|,)\s*(\w+)")


def check_parameters(name: str) -> None:
    text = FILES[name]
    (found,) = SIGNATURE.findall(text)
    parameters = NAME.findall(re.sub(r" default .*?(?=,|$)", "", found[1]))
    assert found[0] == name
    assert [parameter for parameter in parameters if not parameter.startswith("p_")] == []


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


def check_names_in_body(name: str) -> None:
    """But for the text of a statement that is made there."""
    body = re.sub(r"'[^']*'", "", FILES[name].partition("as $$\n")[2])
    assert re.findall(r"\$\d|#variable_conflict", body) == []
    assert [word for word in re.findall(r"(?<=\n    )(\w+) .*?;", _declared(body)) if not word.startswith("v_")] == []


def _declared(body: str) -> str:
    """Return the declarations of a function in PL/pgSQL, each from a new line."""
    return body.partition("begin\n")[0].removeprefix("declare") if body.startswith("declare") else ""


def test_each_function_is_named_as_its_file_and_parameters_begin_with_p(subtests: pytest.Subtests) -> None:
    assert FILES, "a test without a subject cannot fail"
    for name in FILES.keys() - AGGREGATES:
        with subtests.test(name):
            check_parameters(name)


def test_the_header_says_what_is_written_and_by_whom_it_is_called(subtests: pytest.Subtests) -> None:
    for name in FILES:
        with subtests.test(name):
            check_writes_and_callers(name)


def test_bodies_use_names_and_not_positions(subtests: pytest.Subtests) -> None:
    for name in FILES:
        with subtests.test(name):
            check_names_in_body(name)
