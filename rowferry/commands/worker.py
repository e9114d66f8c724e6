"""`rowferry worker`: run one worker process."""

from datetime import timedelta

import click

from rowferry.log import LogFormat, set_up_logging


@click.command("worker", short_help="Work on batches until told to stop.")
@click.option(
    "--parallel", default=64, show_default=True, type=click.IntRange(1, 10_000), help="Objects in flight at once."
)
@click.option("--slots", default=2, show_default=True, type=click.IntRange(1, 64), help="Batches in hand at once.")
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
    "--log-format",
    type=click.Choice(["auto", "text", "json"]),
    default="auto",
    show_default=True,
    envvar="ROWFERRY_LOG_FORMAT",
    help="auto: text on a terminal, JSON lines elsewhere.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log each object and each row as well.")
def command(
    parallel: int,
    slots: int,
    queues: tuple[str, ...],
    until_empty: bool,
    grace: float,
    log_format: LogFormat,
    verbose: bool,
) -> None:
    """Claim batches from the queue and work on them, until told to stop.

    Run as many as you like, on as many hosts as you like: they share the work through the database and need nothing
    but DATABASE_URL (or PG*) and the S3 credentials. The plan comes from the database.

    SIGTERM or Ctrl-C: nothing more is claimed, and batches in hand are finished within --grace seconds, else given
    back. A second signal gives them back at once. A worker that is killed gives its batches back by dying.
    """
    from rowferry_worker.daemon import Options, run_worker

    set_up_logging(log_format, verbose=verbose)
    options = Options(parallel, slots, tuple(queues), until_empty, timedelta(seconds=grace))
    run_worker(options)
