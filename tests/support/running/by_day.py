"""Which parameters of a test run in `make test-all`, and which only in `make test-nightly`."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

import pytest


def is_nightly(item: pytest.Item) -> bool:
    """Return whether a test runs only in `make test-nightly`: its closest marker `by_day` names other parameters.

    The marker has patterns of ids as of a shell. A test without parameters always runs.
    """
    marker = item.get_closest_marker("by_day")
    callspec = getattr(item, "callspec", None)
    return marker is not None and callspec is not None and not is_named(callspec.id, marker.args)


def is_named(parameters: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the patterns fits the id of a test's parameters; a bracket stands for itself."""
    return any(fnmatchcase(parameters, pattern.replace("[", "[[]")) for pattern in patterns)
