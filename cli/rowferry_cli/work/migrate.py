"""`rowferry migrate`: the whole job in one command, with this host's workers."""

from pathlib import Path

import click

from rowferry.plan import OnConflict
from rowferry_cli.options import allow_empty_option, on_conflict_option, plan_option, yes_option


@click.command("migrate")
@plan_option
@click.option(
    "-b", "--batch-size", default=100, show_default=True, type=click.IntRange(1, 100_000), help="Entries in a batch."
)
@click.option(
    "-p", "--processes", default=2, show_default=True, type=click.IntRange(1, 64), help="Worker processes on this host."
)
@click.option(
    "--parallel", default=64, show_default=True, type=click.IntRange(1, 10_000), help="Objects in flight, each worker."
)
@click.option("-l", "--limit", type=click.IntRange(1), help="Entries at most, in one pass; left out: all, in passes.")
@click.option("-w", "--overwrite", is_flag=True, help="Replace what differs (--on-conflict overwrite).")
@on_conflict_option
@allow_empty_option
@click.option("--requeue", is_flag=True, help="Begin with the batches of this migration that are in ERROR from before.")
@click.option("--no-objects", is_flag=True, help="Do not list the buckets to count their objects.")
@click.option("-v", "--verbose", is_flag=True, help="Print a line for each object and each row.")
@click.option(
    "-d",
    "--dry-run",
    is_flag=True,
    help="Say what would be done, and write nothing.",
)
@click.option("-s", "--status-only", is_flag=True, help="Show the status of the data and stop.")
@click.option(
    "--log-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to log; left out: rowferry-<migration>-<time>.log in this folder.",
)
@yes_option
def command(
    plan_path: Path,
    batch_size: int,
    processes: int,
    parallel: int,
    limit: int | None,
    overwrite: bool,
    on_conflict: OnConflict,
    allow_empty: bool,
    requeue: bool,
    no_objects: bool,
    verbose: bool,
    dry_run: bool,
    status_only: bool,
    log_file: Path | None,
    yes: bool,
) -> int:
    """Move the objects and rewrite the rows: check, show, enqueue, work, until no legacy entry is left.

    Asks twice before anything is written: once over what it is about to connect to, once over what it found there.
    Stop it whenever you like (Ctrl-C) and run it again: it goes on where it stopped. Nothing is ever deleted.

    Exit status: 0 all migrated, 1 something failed (see `rowferry errors`), 2 a mistake in plan or settings.
    """
    from rowferry.plan_file import read_plan
    from rowferry_cli.run.session import Choices, run_session

    choices = Choices(
        batch_size=batch_size,
        processes=processes,
        parallel=parallel,
        limit=limit,
        on_conflict="overwrite" if overwrite else on_conflict,
        allow_empty=allow_empty,
        requeue=requeue,
        count_objects=not no_objects,
        verbose=verbose,
        dry_run=dry_run,
        status_only=status_only,
        log_file=log_file,
        yes=yes,
    )
    return run_session(read_plan(plan_path), choices)
