"""Which functions a plan may name: it comes from whoever may enqueue, and what it names is run by every worker."""

import io
import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from typing import Any, cast

from rowferry.errors import MigrationFault

Function = Callable[[io.BufferedReader], Mapping[str, Any]]
"""What `function` names: it is called with a readable binary stream, and returns values by name."""
GROUP = "rowferry.functions"
"""The group of entry points by which packages register functions; the value counts, `module:function`."""
ALLOWED_FUNCTIONS = "ROWFERRY_ALLOWED_FUNCTIONS"
"""The variable that lists functions, and modules for the functions that they define, in the place of entry points."""


def refuse_function(name: str) -> None:
    """Raise MigrationFault where this host's environment, or else its packages, do not allow a function.

    Nothing is imported. A module that is listed stands for what it defines, which `load_function` looks at.
    """
    listed = _list_allowed()
    if listed and name not in listed and name.partition(":")[0] not in listed:
        raise _not_listed(name)
    if not listed and name not in _list_registered():
        raise MigrationFault(
            f"No package registers the function {name}: let one name it in its entry points {GROUP}, list it in "
            f"{ALLOWED_FUNCTIONS} of the environment, here and for the workers, or correct the plan."
        )


@cache
def load_function(name: str) -> Function:
    """Import a function by `module:function`. Raises MigrationFault where that cannot be done, or is not allowed."""
    refuse_function(name)
    module, _, path = name.partition(":")
    try:
        found: Any = attrgetter(path)(import_module(module))
    except Exception as error:
        words = f"The function {name} cannot be loaded ({type(error).__name__}: {error})"
        raise MigrationFault(f"{words}; install its module beside rowferry, or correct the plan.") from error
    listed = _list_allowed()
    if listed and name not in listed and not _defines(module, path, found):
        raise _not_listed(name)
    if not callable(found):
        raise MigrationFault(f"{name} is no function; correct the plan.")
    return cast("Function", found)


def forget_functions() -> None:
    """Look at packages and environment anew."""
    load_function.cache_clear()
    _list_registered.cache_clear()


def _list_allowed() -> list[str]:
    return [each.strip() for each in os.environ.get(ALLOWED_FUNCTIONS, "").split(",") if each.strip()]


@cache
def _list_registered() -> frozenset[str]:
    return frozenset(f"{point.module}:{point.attr}" for point in entry_points(group=GROUP))


def _defines(module: str, path: str, found: object) -> bool:
    """Return whether a module, or one within it, defines what a path leads to: not what it has imported."""
    home = str(getattr(found, "__module__", None))
    return "__" not in path and (home == module or home.startswith(f"{module}."))


def _not_listed(name: str) -> MigrationFault:
    words = f"The function {name} is not among those that {ALLOWED_FUNCTIONS} allows"
    return MigrationFault(f"{words}; add it there, or correct the plan.")
