"""`rowferry worker`: run one worker process, or several behind one command."""

import os
import sys
from datetime import timedelta

import click

from rowferry.errors import DatabaseUnavailable
from rowferry.log import LogFormat, set_up_logging
from rowferry.session import IDLE_TIMEOUT, LOCK_TIMEOUT, LOST_AFTER, PGBOUNCER


@click.command("worker", short_help="Work on batches until told to stop.")
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
    "--parallel-least",
    default=1,
    show_default=True,
    type=click.IntRange(1, 10_000),
    envvar="ROWFERRY_PARALLEL_LEAST",
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
@click.option("--until-empty", is_flag=True, help="Stop when no batch is left, instead of waiting for more.")
@click.option(
    "--grace",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Seconds to finish the batches in hand after SIGTERM; then they are given back.",
)
@click.option(
    "--time-budget",
    default=20.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="Seconds for a batch; what has not begun by then goes back in the queue as a batch of its own.",
)
@click.option(
    "--request-timeout",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="Seconds for one S3 request; what has no answer by then is tried again with its batch.",
)
@click.option(
    "--lock-timeout",
    default=5.0,
    show_default=True,
    type=click.FloatRange(0.001),
    envvar="ROWFERRY_LOCK_TIMEOUT",
    help="Seconds to wait for rows that the application holds locked; then they are put back for later.",
)
@click.option(
    "--lost-after",
    default=15.0,
    show_default=True,
    type=click.FloatRange(3),
    envvar="ROWFERRY_LOST_AFTER",
    help="Seconds after which PostgreSQL gives up a worker whose host is silent, and frees its batches.",
)
@click.option(
    "--idle-timeout",
    default=600.0,
    show_default=True,
    type=click.FloatRange(1),
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
@click.option(
    "--log-format",
    type=click.Choice(["auto", "text", "json"]),
    default="auto",
    show_default=True,
    envvar="ROWFERRY_LOG_FORMAT",
    help="auto: text on a terminal, JSON lines elsewhere.",
)
@click.option("--trace", is_flag=True, help="Send a span a batch to OTEL_EXPORTER_OTLP_ENDPOINT (extra: otel).")
@click.option("-v", "--verbose", is_flag=True, help="Log each object and each row as well.")
def command(
    processes: int,
    parallel: int,
    parallel_least: int,
    slots: int,
    queues: tuple[str, ...],
    until_empty: bool,
    grace: float,
    time_budget: float,
    request_timeout: float,
    lock_timeout: float,
    lost_after: float,
    idle_timeout: float,
    pgbouncer: bool,
    metrics_port: int | None,
    metrics_host: str,
    log_format: LogFormat,
    trace: bool,
    verbose: bool,
) -> int:
    """Claim batches from the queue and work on them, until told to stop.

    Run as many as you like, on as many hosts as you like: they share the work through the database and need nothing
    but DATABASE_URL (or PG*) and the S3 credentials. The plan comes from the database.

    SIGTERM or Ctrl-C: nothing more is claimed, and batches in hand are finished within --grace seconds, else given
    back. A second signal gives them back at once. A worker that is killed gives its batches back by dying.

    With --processes a process that dies is replaced, and one port serves the metrics of all.
    """
    if parallel_least > parallel:
        raise click.UsageError(f"--parallel-least {parallel_least} is more than --parallel {parallel}")
    set_up_logging(log_format, verbose=verbose)
    if idle_timeout <= time_budget:
        raise click.UsageError(f"--idle-timeout {idle_timeout:g} is not more than --time-budget {time_budget:g}")
    os.environ |= {LOCK_TIMEOUT: str(lock_timeout), PGBOUNCER: str(int(pgbouncer))}
    os.environ |= {LOST_AFTER: str(lost_after), IDLE_TIMEOUT: str(idle_timeout)}
    if processes > 1:
        from rowferry_worker.processes import run_processes

        arguments = [f"--parallel={parallel}", f"--slots={slots}", f"--grace={grace}", f"--log-format={log_format}"]
        arguments += [f"--parallel-least={parallel_least}"]
        arguments += [f"--queue={queue}" for queue in queues]
        arguments += [f"--time-budget={time_budget}", f"--request-timeout={request_timeout}"]
        arguments += ["--until-empty"] * until_empty + ["--verbose"] * verbose + ["--trace"] * trace
        command = [sys.executable, "-m", "rowferry", "worker", *arguments]
        return run_processes(processes, command, timedelta(seconds=grace), metrics_host, metrics_port)

    from rowferry_worker.daemon import Options, run_worker
    from rowferry_worker.supervised import NO_DATABASE, PROCESS_NUMBER
    from rowferry_worker.tracing import set_up_tracing

    set_up_tracing(asked=trace)
    options = Options(
        parallel=parallel,
        parallel_least=parallel_least,
        slots=slots,
        queues=tuple(queues),
        until_empty=until_empty,
        grace=timedelta(seconds=grace),
        time_budget=timedelta(seconds=time_budget),
        request_timeout=timedelta(seconds=request_timeout),
        metrics_host=metrics_host,
        metrics_port=metrics_port,
    )
    try:
        run_worker(options)
    except DatabaseUnavailable as error:
        if not PROCESS_NUMBER:
            raise
        click.echo(f"rowferry: {error}", err=True)
        return NO_DATABASE
    return 0
