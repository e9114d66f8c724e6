"""A plugin of pytest: `--tier quick` is the tests of `make test`, `--tier rest` what they leave out of a day's."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest

from support.checkout import ROOT
from support.running.by_day import is_named

Tier = Literal["quick", "rest"]
LIST = ROOT / "tests" / "quick.toml"
"""Written by `make quick-list`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=("quick", "rest"), help="run a part of the tests; all of them without it")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a quick test, which cost a third of the collecting."""
    if config.getoption("tier") != "quick" or not collection_path.is_relative_to(ROOT):
        return None
    return is_unread(collection_path.relative_to(ROOT).as_posix()) or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier; the markers of the other plugins are there by now."""
    tier: Tier | None = config.getoption("tier")
    if tier is None:
        return
    parts: dict[Tier, list[pytest.Item]] = {"quick": [], "rest": []}
    for item in items:
        parts["quick" if is_quick(item) else "rest"].append(item)
    items[:] = parts.pop(tier)
    config.hook.pytest_deselected(items=[item for part in parts.values() for item in part])


def is_quick(item: pytest.Item) -> bool:
    """Return whether `make test` runs a test: it must, is cheap without a server, or is chosen by what it reaches."""
    if item.get_closest_marker("soak") or is_unread(item.nodeid.partition("::")[0]):
        return False
    if is_must(item):
        return True
    if item.get_closest_marker("fast"):
        return not is_listed(item, "dear")
    return is_listed(item, "chosen")


def is_unread(file: str) -> bool:
    """Return whether a file had no quick test when the list was written: a new one waits for the next list."""
    return file in read_list()["unread"]


def is_must(item: pytest.Item) -> bool:
    """Return whether a test is marked as the one of its kind; behind the kind stand patterns of parameters."""
    marker = item.get_closest_marker("must")
    callspec = getattr(item, "callspec", None)
    return marker is not None and (len(marker.args) == 1 or is_named(callspec.id if callspec else "", marker.args[1:]))


def is_listed(item: pytest.Item, name: Literal["dear", "chosen"]) -> bool:
    file, _, test = item.nodeid.partition("::")
    if item.get_closest_marker("xdist_group"):  # whose name stands behind the test's own
        test = test.rpartition("@")[0] or test
    return test in read_list()[name].get(file, ())


@cache
def read_list() -> dict[str, Any]:
    """Return the list, with sets where it has lists of tests."""
    found = tomllib.loads(LIST.read_text(encoding="utf-8"))
    named = {name: {file: {*tests} for file, tests in found[name].items()} for name in ("dear", "chosen")}
    return {**found, **named, "unread": {*found["unread"]}}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what the quick tests were not, and what runs it."""
    if config.getoption("tier") == "quick":
        terminalreporter.section("what did not run")
        terminalreporter.write(
            f"Some {read_list()['left_out']} slower tests: `make test-all` runs them too, in ten minutes, "
            "and CI does. Docs and types: `make check`.\n"
        )
