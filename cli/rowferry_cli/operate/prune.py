"""`rowferry prune`: delete batches that finished long ago, and migrations that are over."""

from datetime import timedelta

import click

from rowferry_cli.command import Command
from rowferry_cli.messages import confirm
from rowferry_cli.migration import choose_queue, queue_option
from rowferry_cli.options import Duration, yes_option

BATCHES_PER_STEP = 1_000
"""Of one transaction."""


@click.command("prune", cls=Command)
@click.option(
    "--older-than", type=Duration(), required=True, help="Only batches that finished longer ago: 30m, 12h, 30d, 4w."
)
@queue_option
@click.option(
    "--migrations", is_flag=True, help="Also delete migrations that have no batches and no activity in that time."
)
@yes_option
def command(older_than: timedelta, queue: str | None, migrations: bool, yes: bool) -> None:
    """Delete DONE batches that finished longer ago than --older-than, and their attempts, in small transactions.

    Their entries disappear from `rowferry status` and `rowferry report`, so save the report first. Batches that wait or
    are in ERROR stay. Attempts without a batch, workers not seen since then, and dashboard history older than that are
    deleted too, for all queues. Your rows and objects are not touched.

    With --migrations, migrations that are over go as well, with their stored plans: no batch is left of them, and
    nothing has happened to them since then. One with an unfinished upload stays, and one whose rows stay until its
    application is switched. `rowferry enqueue` with the same plan makes it anew.
    """
    from rowferry.db.connection import call, connect, translated_errors
    from rowferry.formatting import count_batches, hide_unfit

    total = 0
    with connect("prune", autocommit=True) as connection, translated_errors():
        choose_queue(connection, queue, None)
        if not yes:
            confirm(
                f"Delete these batches and their counts{' and the migrations that are over' if migrations else ''}?"
            )
        while True:
            (row,) = call(connection, "prune_batches", older_than, BATCHES_PER_STEP, queue)
            total += row["prune_batches"]
            if row["prune_batches"] < BATCHES_PER_STEP:
                break
        call(connection, "prune_leftovers", older_than)
        over = call(connection, "prune_migrations", older_than) if migrations else []
    click.echo(f"Pruned {count_batches(total)}.")
    for row in over:
        click.echo(f"Pruned migration {hide_unfit(row['prune_migrations'])}.")
