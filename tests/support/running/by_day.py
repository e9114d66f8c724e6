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


def find_faults(items: Iterable[pytest.Item]) -> list[str]:
    """Return what is wrong with the markers of all tests: a pattern that fits nothing, a test of which nothing is left.

    A marker may be shared by the tests of a file, and a pattern has to fit one of them.
    """
    fitting: dict[tuple[str, str], bool] = {}
    left: dict[str, bool] = {}
    for item in items:
        marker, callspec = item.get_closest_marker("by_day"), getattr(item, "callspec", None)
        if marker is None or callspec is None:
            continue
        file, test = item.nodeid.partition("::")[0], item.nodeid.partition("[")[0]
        left[test] = left.get(test, False) or not item.get_closest_marker("soak")
        for pattern in marker.args:
            fits = is_named(callspec.id, [pattern])
            fitting[file, pattern] = fitting.get((file, pattern), False) or fits
    faults = [f"{file}: {pattern!r} fits no parameters" for (file, pattern), fits in fitting.items() if not fits]
    return faults + [
        f"{test}: by_day leaves nothing of it; mark it soak" for test, is_left in left.items() if not is_left
    ]
