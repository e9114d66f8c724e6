"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_PLAN = "rowferry.toml"


def plan_option(function: F) -> F:
    """Add --plan, which arrives as the Path `plan_path`."""
    return click.option(
        "--plan",
        "plan_path",
        type=click.Path(path_type=Path),
        default=DEFAULT_PLAN,
        envvar="ROWFERRY_PLAN",
        show_default=True,
        show_envvar=True,
        help="The plan file.",
    )(function)


def yes_option(function: F) -> F:
    """Add -y/--yes, which answers every question with yes."""
    return click.option("-y", "--yes", is_flag=True, help="Answer every question with yes.")(function)


def json_option(function: F) -> F:
    """Add --json, which arrives as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(function)


def on_conflict_option(function: F) -> F:
    """Add --on-conflict: what to do where a different production object stands."""
    return click.option(
        "--on-conflict",
        type=click.Choice(["fail", "keep", "overwrite"]),
        default="fail",
        show_default=True,
        help="Where a different object stands at the production key: report it, trust it, or replace it.",
    )(function)
