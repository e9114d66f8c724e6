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


def allow_empty_option(function: F) -> F:
    """Add --allow-empty: that the plan's tables have no legacy entry is no problem."""
    return click.option("--allow-empty", is_flag=True, help="Take it for right that no legacy entry is left.")(function)


def json_option(function: F) -> F:
    """Add --json, which arrives as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(function)


def log_format_option(function: F) -> F:
    """Add --log-format, which arrives as a LogFormat."""
    return click.option(
        "--log-format",
        type=click.Choice(["auto", "text", "json"]),
        default="auto",
        show_default=True,
        envvar="ROWFERRY_LOG_FORMAT",
        help="auto: text on a terminal, JSON lines elsewhere.",
    )(function)


def on_conflict_option(function: F) -> F:
    """Add --on-conflict: what to do where a different production object stands."""
    return click.option(
        "--on-conflict",
        type=click.Choice(["fail", "keep", "overwrite"]),
        default="fail",
        show_default=True,
        help="Where a different object stands at the production key: report it, trust it, or replace it.",
    )(function)


def batch_size_option(function: F) -> F:
    """Add -b/--batch-size, entries in a batch."""
    return click.option(
        "-b",
        "--batch-size",
        default=100,
        show_default=True,
        type=click.IntRange(1, 100_000),
        help="Entries in a batch.",
    )(function)


def within_options(function: F) -> F:
    """Add --table, --first and --last: which entries of the plan are meant."""
    function = click.option("--last", metavar="ID", help="Only entries up to this id, it included.")(function)
    function = click.option("--first", metavar="ID", help="Only entries from this id on, it included.")(function)
    return click.option("--table", metavar="TABLE", help="Only this table (or table.key) of the plan.")(function)


def crew_options(function: F) -> F:
    """Add --processes, --parallel and --log-file: the workers of this host."""
    function = click.option(
        "--log-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Where to log; left out: rowferry-<migration>-<queue>-<time>.log in this folder.",
    )(function)
    function = click.option(
        "--parallel",
        default=64,
        show_default=True,
        type=click.IntRange(1, 10_000),
        help="Objects in flight, each worker.",
    )(function)
    return click.option(
        "-p",
        "--processes",
        default=2,
        show_default=True,
        type=click.IntRange(0, 64),
        help="Worker processes on this host; 0: only enqueue, for workers elsewhere.",
    )(function)
