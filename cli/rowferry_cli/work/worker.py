"""`rowferry worker`: run one worker process, or several under a supervisor."""

import gc
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import timedelta
from functools import partial
from typing import Any

import click

from rowferry.db.timeouts import (
    DEFAULT_IDLE_TIMEOUT,
    DEFAULT_LOCK_TIMEOUT,
    DEFAULT_LOST_AFTER,
    IDLE_TIMEOUT,
    LOCK_TIMEOUT,
    LOST_AFTER,
    PGBOUNCER,
)
from rowferry.errors import DatabaseUnavailable, RowferryError, WorkLeft
from rowferry.formatting import show_text
from rowferry.logs import set_up_logging
from rowferry_cli.command import Command, Group
from rowferry_cli.options import Duration, complete_queue, log_format_option
from rowferry_worker.options import Options
from rowferry_worker.service import HOST_NAME

GROUPS = (
    Group(
        "Pace",
        "A worker finds by itself how many objects to have in flight. Bound it only to spare a server, or a host with "
        "little memory.",
        ("--parallel", "--min-parallel"),
    ),
    Group(
        "Time",
        "How long batches and requests may take. The defaults suit objects of all sizes.",
        ("--grace", "--time-budget", "--request-timeout"),
    ),
    Group(
        "PostgreSQL",
        "How long a worker waits for rows, and PostgreSQL for a worker; and how many connections it takes.",
        ("--lock-timeout", "--lost-after", "--idle-timeout", "--max-batches", "--pgbouncer"),
    ),
    Group(
        "Metrics and logs",
        "Where they go, and in which form.",
        ("--metrics-host", "--host-name", "--log-format"),
    ),
)
"""The options that most people never need."""

NOT_FORWARDED = frozenset({"processes", "metrics_port", "metrics_host"})
"""The supervisor's own options: it starts the processes, and serves the metrics of all on one port."""


DEFAULTS = {field.name: field.default for field in fields(Options) if field.default is not MISSING}


def number_option(name: str, most: int, help: str) -> Callable[..., Any]:  # noqa: A002
    """Return an option that takes a whole number from 1 to `most`; its default is that of Options, if it has one."""
    default = DEFAULTS.get(name.removeprefix("--").replace("-", "_"))
    return click.option(
        name, default=default, show_default=default is not None, type=click.IntRange(1, most), help=help
    )


def seconds_option(
    name: str,
    least: float,
    help: str,  # noqa: A002
    default: timedelta | None = None,
    **more: Any,
) -> Callable[..., Any]:
    """Return an option that takes at least `least` seconds; its default is `default`, or that of Options."""
    usual = default or DEFAULTS[name.removeprefix("--").replace("-", "_")]
    return click.option(
        name, default=usual.total_seconds(), show_default=True, type=Duration("2m", least=least), help=help, **more
    )


class SessionOption(click.Option):
    """An option that is read from its variable, by every connection of this process and of its children."""


def check_host_name(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """Return the name. Raises click.BadParameter if hosts cannot be called that (RFC 1123, and underscores)."""
    if name is not None and not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", name):
        raise click.BadParameter(f"{name!r} is no host's name: use letters, digits, dots and hyphens")
    return name


def check(chosen: Mapping[str, Any]) -> None:
    """Raise click.UsageError if two options contradict each other."""
    parallel, min_parallel = chosen["parallel"], chosen["min_parallel"]
    if parallel is not None and min_parallel > parallel:
        raise click.UsageError(f"--min-parallel {min_parallel} is more than --parallel {parallel}")
    idle_timeout, time_budget = (chosen[name].total_seconds() for name in ("idle_timeout", "time_budget"))
    if idle_timeout <= time_budget:
        raise click.UsageError(f"--idle-timeout {idle_timeout:g} is not more than --time-budget {time_budget:g}")


def set_environment(context: click.Context) -> None:
    """Set the variable of each SessionOption that has a value."""
    for option in context.command.params:
        value = context.params[option.name or ""]
        if isinstance(option, SessionOption) and value is not None:
            os.environ[str(option.envvar)] = str(int(value)) if option.is_flag else _format_value(value)


EPILOG = """Nothing needs to be set: a worker uses all cores that it may use, and finds by itself how many objects to
have in flight, what the servers allow, and how many batches that takes."""


@click.command("worker", cls=Command, epilog=EPILOG, groups=GROUPS)
@number_option("--processes", 256, "Worker processes.  [default: one per core]")
@number_option(
    "--parallel", 10_000, "Maximum number of objects in flight per process.  [default: as many as improve throughput]"
)
@number_option(
    "--min-parallel",
    10_000,
    "Objects in flight per process that are always allowed, even if a server throttles or slows down.",
)
@number_option(
    "--max-batches",
    64,
    "Maximum number of batches at once per process; each has a connection to PostgreSQL.",
)
@click.option(
    "--queue",
    "queues",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_queue,
    help="A queue to serve.  [default: all that are known here]",
)
@click.option("--migration", "migrations", metavar="NAME", multiple=True, help="A migration to serve.  [default: all]")
@click.option("--until-empty", is_flag=True, help="Stop when no batch is left instead of waiting for more.")
@click.option("--end-when-unusable", is_flag=True, hidden=True)
@seconds_option("--grace", 0, "Seconds to finish running batches after SIGTERM; then they are released.")
@seconds_option(
    "--time-budget", 0.1, "Seconds per batch; entries not started by then return to the queue as a new batch."
)
@seconds_option("--request-timeout", 0.1, "Seconds per S3 request; then it is retried with its batch.")
@seconds_option(
    "--lock-timeout",
    0.001,
    "Seconds to wait for rows that the application has locked; then they are retried later.",
    DEFAULT_LOCK_TIMEOUT,
    envvar=LOCK_TIMEOUT,
    cls=SessionOption,
)
@seconds_option(
    "--lost-after",
    3,
    "Seconds after which PostgreSQL drops a worker whose host is silent, which releases its batches.",
    DEFAULT_LOST_AFTER,
    envvar=LOST_AFTER,
    cls=SessionOption,
)
@seconds_option(
    "--idle-timeout",
    1,
    "Seconds after which PostgreSQL ends a batch's transaction that waits for S3; more than --time-budget.",
    DEFAULT_IDLE_TIMEOUT,
    envvar=IDLE_TIMEOUT,
    cls=SessionOption,
)
@click.option(
    "--pgbouncer",
    is_flag=True,
    envvar=PGBOUNCER,
    cls=SessionOption,
    help="DATABASE_URL points to PgBouncer in transaction mode.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Serve /metrics, /healthz and /readyz on this port; 0: any free port.  [default: off; 9464 is usual]",
)
@click.option(
    "--metrics-host",
    metavar="HOST",
    default=DEFAULTS["metrics_host"],
    show_default=True,
    help="The address to serve them on; 0.0.0.0: all.",
)
@click.option(
    "--host-name",
    metavar="NAME",
    envvar=HOST_NAME,
    cls=SessionOption,
    callback=check_host_name,
    help="What views, metrics and dashboards call this host.  [default: the system's name for it]",
)
@log_format_option
@click.option("-v", "--verbose", is_flag=True, help="Also log each object and each row.")
@click.pass_context
def command(context: click.Context, **chosen: Any) -> int:
    """Claim batches from the queue and process them, until it is stopped.

    Start it once on each host, on as many hosts as you like: workers share the work through the database, and need
    only DATABASE_URL (or PG*) and the S3 credentials. The plan is in the database.

    It serves all queues that are installed on this host (see `rowferry queues`), unless --queue names some. Batches of
    other queues wait for workers that know them; a queue whose package is faulty is logged and left out.

    SIGTERM or Ctrl-C stops claiming: running batches finish within --grace seconds, or are released. A second signal
    releases them at once. The batches of a worker that is killed are released when its connection ends.

    Processes that die or hang are replaced, and one port serves the metrics of all.
    """
    from rowferry_worker.machine import choose_processes, forbid_cores
    from rowferry_worker.service import process_number

    check(chosen)
    set_up_logging(chosen["log_format"], verbose=chosen["verbose"])
    set_environment(context)
    forbid_cores()
    if process_number():
        return _work_supervised(chosen)
    count = chosen["processes"] or choose_processes()
    return _supervise(context, count) if count > 1 else _work(chosen)


def _supervise(context: click.Context, count: int) -> int:
    """Run several processes of this command and return the exit status."""
    gc.disable()  # a sixth of the time would go into walking through what stays
    from rowferry_worker.daemon import import_queues
    from rowferry_worker.supervisor.supervisor import run_processes

    options = ["--processes=1", *forward_options(context, but=NOT_FORWARDED)]
    for option in context.command.params:  # each process gets its options once, on its command line
        os.environ.pop(str(option.envvar), None)
    set_environment(context)
    command = [sys.executable, "-m", "rowferry_cli", "worker", *options]
    chosen = context.params
    import_queues(chosen["queues"])
    gc.freeze()
    gc.enable()
    work = partial(_work_supervised, {**chosen, "metrics_port": None})
    where = {name: chosen[name] for name in ("metrics_host", "metrics_port")}
    return run_processes(count, command, work, chosen["grace"], **where)


def forward_options(context: click.Context, *, but: Collection[str]) -> list[str]:
    """Return the arguments that pass this command's options to another process, except those named in `but`.

    Names are those of `context.params`. Options without a value and flags that are not set are left out.
    """
    return [
        argument
        for option in context.command.params
        if isinstance(option, click.Option) and option.name not in but
        for argument in _format_option(option, context.params[option.name])
    ]


def _format_option(option: click.Option, value: object) -> Iterator[str]:
    name = option.opts[-1]
    if option.is_flag:
        yield from [name] if value else []
    elif option.multiple and isinstance(value, tuple):
        yield from (f"{name}={one}" for one in value)  # pyright: ignore[reportUnknownVariableType]
    elif value is not None:
        yield f"{name}={_format_value(value)}"


def _format_value(value: object) -> str:
    return str(value.total_seconds()) if isinstance(value, timedelta) else str(value)


def _work(chosen: Mapping[str, Any]) -> int:
    """Work in this process and return the exit status."""
    gc.disable()
    from rowferry_worker.daemon import run_worker

    names = {field.name for field in fields(Options)}
    run_worker(Options(**{name: value for name, value in chosen.items() if name in names and value is not None}))
    return 0


def _work_supervised(chosen: Mapping[str, Any]) -> int:
    """Work as one of several processes; why this one ends is for the supervisor to say, once."""
    from rowferry_worker.service import NO_DATABASE, tell_reason
    from rowferry_worker.supervisor.supervisor import MISTAKE, WORK_LEFT

    try:
        return _work(chosen)
    except DatabaseUnavailable as error:
        click.echo(f"rowferry: {show_text(error)}", err=True)
        return NO_DATABASE
    except RowferryError as error:
        tell_reason(str(error))
        return WORK_LEFT if isinstance(error, WorkLeft) else MISTAKE
