"""`rowferry worker`: run one worker process, or several behind one command."""

import sys
from collections.abc import Collection, Iterator
from datetime import timedelta
from typing import Any

import click

from rowferry.errors import DatabaseUnavailable
from rowferry.formatting import show_text
from rowferry.logs import set_up_logging
from rowferry_cli.options import Seconds, log_format_option
from rowferry_cli.work.worker_choices import Choices


def forward_options(context: click.Context, *, but: Collection[str]) -> list[str]:
    """Return the arguments that give another process the options of this one, but for those named in `but`.

    Options are named as in `context.params`. Those without a value, and flags that are not set, are left out.
    """
    return [
        argument
        for option in context.command.params
        if isinstance(option, click.Option) and option.name not in but
        for argument in _write(option, context.params[option.name])
    ]


def _write(option: click.Option, value: object) -> Iterator[str]:
    name = option.opts[-1]
    if option.is_flag:
        yield from [name] if value else []
    elif option.multiple and isinstance(value, tuple):
        yield from (f"{name}={one}" for one in value)  # pyright: ignore[reportUnknownVariableType]
    elif value is not None:
        yield f"{name}={value}"


NOT_FORWARDED = frozenset({"processes", "metrics_port", "metrics_host"})
"""Options that are the supervisor's own: it starts the processes, and serves the metrics of all on one port."""


@click.command("worker")
@click.option(
    "--processes", default=1, show_default=True, type=click.IntRange(1, 256), help="Worker processes; one a core."
)
@click.option(
    "--parallel",
    default=64,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Objects in flight at once, in each process.",
)
@click.option(
    "--min-parallel",
    default=1,
    show_default=True,
    type=click.IntRange(1, 10_000),
    envvar="ROWFERRY_MIN_PARALLEL",
    help="Objects in flight that stay allowed while a server throttles or slows down, in each process.",
)
@click.option(
    "--slots",
    default=2,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Batches in hand at once, in each process.",
)
@click.option("--queue", "queues", multiple=True, default=["migrate"], show_default=True, help="A queue to serve.")
@click.option("--migration", "migrations", multiple=True, help="A migration to serve, by its name.  [default: all]")
@click.option("--until-empty", is_flag=True, help="Stop when no batch is left, instead of waiting for more.")
@click.option("--end-when-unusable", is_flag=True, hidden=True)
@click.option(
    "--grace",
    default=30.0,
    show_default=True,
    type=Seconds(0),
    help="Seconds to finish the batches in hand after SIGTERM; then they are given back.",
)
@click.option(
    "--time-budget",
    default=20.0,
    show_default=True,
    type=Seconds(0.1),
    help="Seconds for a batch; what has not begun by then goes back in the queue as a batch of its own.",
)
@click.option(
    "--request-timeout",
    default=60.0,
    show_default=True,
    type=Seconds(0.1),
    help="Seconds for one S3 request; what has no answer by then is tried again with its batch.",
)
@click.option(
    "--lock-timeout",
    default=5.0,
    show_default=True,
    type=Seconds(0.001),
    envvar="ROWFERRY_LOCK_TIMEOUT",
    help="Seconds to wait for rows that the application holds locked; then they are put back for later.",
)
@click.option(
    "--lost-after",
    default=15.0,
    show_default=True,
    type=Seconds(3),
    envvar="ROWFERRY_LOST_AFTER",
    help="Seconds after which PostgreSQL gives up a worker whose host is silent, and frees its batches.",
)
@click.option(
    "--idle-timeout",
    default=600.0,
    show_default=True,
    type=Seconds(1),
    envvar="ROWFERRY_IDLE_TIMEOUT",
    help="Seconds after which PostgreSQL ends a batch's transaction that waits for S3; more than --time-budget.",
)
@click.option(
    "--pgbouncer",
    is_flag=True,
    envvar="ROWFERRY_PGBOUNCER",
    help="DATABASE_URL leads to PgBouncer in transaction mode.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    help="Serve /metrics, /healthz and /readyz on this port; 0: any free one. Off unless given; 9464 is usual.",
)
@click.option(
    "--metrics-host",
    default="127.0.0.1",
    show_default=True,
    help="The address to serve them on; 0.0.0.0 lets other hosts in.",
)
@log_format_option
@click.option("--trace", is_flag=True, help="Send a span a batch to OTEL_EXPORTER_OTLP_ENDPOINT (extra: otel).")
@click.option("-v", "--verbose", is_flag=True, help="Log each object and each row as well.")
@click.pass_context
def command(context: click.Context, **chosen: Any) -> int:
    """Claim batches from the queue and work on them, until told to stop.

    Run as many as you like, on as many hosts as you like: they share the work through the database and need nothing
    but DATABASE_URL (or PG*) and the S3 credentials. The plan comes from the database.

    SIGTERM or Ctrl-C: nothing more is claimed, and batches in hand are finished within --grace seconds, else given
    back. A second signal gives them back at once. A worker that is killed gives its batches back by dying.

    With --processes a process that dies is replaced, and one port serves the metrics of all.
    """
    choices = Choices(**chosen)
    choices.check()
    set_up_logging(choices.log_format, verbose=choices.verbose)
    choices.bound_sessions()
    return _supervise(context, choices) if choices.processes > 1 else _work(choices)


def _supervise(context: click.Context, choices: Choices) -> int:
    """Look after several processes of this command and return the exit status."""
    from rowferry_worker.supervisor import run_processes

    command = [sys.executable, "-m", "rowferry_cli", "worker", *forward_options(context, but=NOT_FORWARDED)]
    grace = timedelta(seconds=choices.grace)
    return run_processes(choices.processes, command, grace, choices.metrics_host, choices.metrics_port)


def _work(choices: Choices) -> int:
    """Work in this process and return the exit status."""
    from rowferry_worker.daemon import Options, run_worker
    from rowferry_worker.monitoring.tracing import set_up_tracing
    from rowferry_worker.service import NO_DATABASE, PROCESS_NUMBER

    set_up_tracing(asked=choices.trace)
    options = Options(
        parallel=choices.parallel,
        min_parallel=choices.min_parallel,
        slots=choices.slots,
        queues=choices.queues,
        migrations=choices.migrations,
        end_when_unusable=choices.end_when_unusable,
        until_empty=choices.until_empty,
        grace=timedelta(seconds=choices.grace),
        time_budget=timedelta(seconds=choices.time_budget),
        request_timeout=timedelta(seconds=choices.request_timeout),
        metrics_host=choices.metrics_host,
        metrics_port=choices.metrics_port,
    )
    try:
        run_worker(options)
    except DatabaseUnavailable as error:
        if not PROCESS_NUMBER:
            raise
        click.echo(f"rowferry: {show_text(error)}", err=True)
        return NO_DATABASE
    return 0
