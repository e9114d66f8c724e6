"""`rowferry prune`: forget batches that were finished long ago."""

from datetime import timedelta

import click

from rowferry_cli.durations import Duration
from rowferry_cli.options import yes_option
from rowferry_cli.usage import confirm

ATTEMPTS_IN_A_STEP = 10_000


@click.command("prune")
@click.option(
    "--older-than", type=Duration(), required=True, help="Only batches finished longer ago: 30m, 12h, 30d, 4w."
)
@click.option(
    "--step", default=1000, show_default=True, type=click.IntRange(1, 100_000), help="Batches in a transaction."
)
@yes_option
def command(older_than: timedelta, step: int, yes: bool) -> None:
    """Delete DONE batches that finished longer ago than --older-than, with their attempts, in small steps.

    What they counted is gone from `rowferry status` and `rowferry report` afterwards: keep the report first. Batches
    that wait or are in ERROR stay. Attempts whose batch is gone, and workers that were last seen before then, are
    forgotten too. Rows and objects are not touched.
    """
    from rowferry.db.connection import call, connect, translated_errors
    from rowferry.formatting import count_batches

    if not yes:
        confirm("Forget these batches and what they counted?")
    total = 0
    with connect("prune", autocommit=True) as connection, translated_errors():
        while True:
            (row,) = call(connection, "prune_batches", older_than, step)
            total += row["prune_batches"]
            if row["prune_batches"] < step:
                break
        looked_at: int | None = 0
        while looked_at is not None:
            (row,) = call(connection, "prune_leftovers", older_than, looked_at, ATTEMPTS_IN_A_STEP)
            looked_at = row["prune_leftovers"]
    click.echo(f"Pruned {count_batches(total)}.")
