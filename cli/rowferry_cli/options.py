"""Options and types of values that several commands share."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from rowferry.batch import DEFAULT_BATCH_SIZE
from rowferry.formatting import parse_duration, parse_seconds
from rowferry_cli.command import Group

F = TypeVar("F", bound=Callable[..., Any])

MAX_PROCESSES = 64
"""Of the workers that a command starts for itself."""
DEFAULT_PLAN = "rowferry.toml"


# The plan, and which of its entries


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


def allow_empty_option(function: F) -> F:
    """Add --allow-empty: tables without legacy entries are no problem."""
    return click.option("--allow-empty", is_flag=True, help="Accept tables without legacy entries.")(function)


def range_options(function: F) -> F:
    """Add --table, --first and --last: which entries of the plan."""
    function = click.option("--last", metavar="ID", help="Only entries up to this id (inclusive).")(function)
    function = click.option("--first", metavar="ID", help="Only entries from this id on (inclusive).")(function)
    return click.option("--table", metavar="TABLE", help="Only this table (or table.key) of the plan.")(function)


def on_conflict_option(function: F) -> F:
    """Add --on-conflict: what to do with a different production object."""
    return click.option(
        "--on-conflict",
        type=click.Choice(["fail", "keep", "older", "overwrite"]),
        help="If a different object exists at the production key: report it, keep it, overwrite it if it is older than "
        "the legacy object, or overwrite it.  [default: fail; older, where rows stay]",
    )(function)


# Batches and workers


def batch_size_option(function: F) -> F:
    """Add -b/--batch-size, in entries."""
    return click.option(
        "-b",
        "--batch-size",
        default=DEFAULT_BATCH_SIZE,
        show_default=True,
        type=click.IntRange(1, 100_000),
        help="Entries per batch.",
    )(function)


def limit_option(function: F) -> F:
    """Add -l/--limit, in entries."""
    return click.option(
        "-l",
        "--limit",
        type=click.IntRange(1),
        help="Enqueue only this many entries, in one pass.",
    )(function)


WORKERS = Group(
    "Workers",
    "Nothing needs to be set: there is a worker for each core, and each finds its pace by itself. Set these to spare a "
    "server or this host.",
    ("--processes", "--parallel", "--batch-size"),
)
"""In the help of each command that starts workers."""

LOG_FILE = Group("Log", "What the workers log goes to a file.", ("--log-file",))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The workers that a command starts on this host."""

    processes: int | None
    """None: as many as suit this machine; 0: none, workers elsewhere process the batches."""
    parallel: int | None
    """Objects in flight per worker, at most; None: no bound but those of the machine."""
    log_file: Path | None


def worker_options(function: F) -> F:
    """Add --processes, --parallel and --log-file, the fields of WorkerOptions."""
    function = click.option(
        "--log-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The log file.  [default: rowferry-<migration>-<queue>-<time>.log in this folder]",
    )(function)
    function = click.option(
        "--parallel",
        type=click.IntRange(1, 10_000),
        help="Maximum number of objects in flight per worker.  [default: as many as improve throughput]",
    )(function)
    return click.option(
        "-p",
        "--processes",
        type=click.IntRange(0, MAX_PROCESSES),
        help="Worker processes on this host; 0: only enqueue, for workers elsewhere.  [default: one per core]",
    )(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOptions(WorkerOptions):
    """The options that `rowferry verify` and `rowferry revert` share."""

    plan_path: Path
    table: str | None
    first: str | None
    last: str | None
    batch_size: int
    yes: bool


def pass_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of PassOptions, which arrive as one `options`."""

    @wraps(function)
    def call(**chosen: Any) -> Any:
        shared = {field.name: chosen.pop(field.name) for field in fields(PassOptions)}
        return function(PassOptions(**shared), **chosen)

    for add in (yes_option, worker_options, batch_size_option, range_options, plan_option):
        add(call)
    return call


# Talking to a person or a script


def yes_option(function: F) -> F:
    """Add -y/--yes, which answers every question with yes."""
    return click.option("-y", "--yes", is_flag=True, help="Answer every question with yes.")(function)


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


# Durations


class Duration(click.ParamType[timedelta]):
    """A number and its unit: `30m`, `12h`, `1.5d`."""

    def __init__(self, example: str = "12h", *, least: float | None = None) -> None:
        """Suggest `example` where a value is wrong. With `least`, a number alone is so many seconds, at least these."""
        self.name = "duration" if least is None else "seconds"
        self._least = least
        self._wanted = f"{'' if least is None else 'seconds, or '}a number and s, m, h, d or w (for example {example})"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the duration. Raises click.UsageError."""
        if isinstance(value, timedelta):
            return value
        text = str(value)
        seconds = None if self._least is None else parse_seconds(text)
        duration = parse_duration(text) if seconds is None else timedelta(seconds=seconds)
        if duration is None:
            self.fail(f"{text!r} is no duration: use {self._wanted}", param, ctx)
        if duration.total_seconds() < (self._least or 0):
            self.fail(f"{text!r} is less than {self._least:g} s", param, ctx)
        return duration


def complete_queue(_context: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    """Return the names of the queues that are installed here and begin so, for the shell."""
    from rowferry.queues import list_queues

    return [name for name in list_queues() if name.startswith(begun)]
