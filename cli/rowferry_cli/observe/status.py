"""`rowferry status`: counts of the data and of the queue."""

from pathlib import Path

import click

from rowferry.formatting import format_json
from rowferry_cli.command import Command
from rowferry_cli.migration import choose_queue, queue_option
from rowferry_cli.options import json_option, plan_option


@click.command("status", cls=Command)
@plan_option
@queue_option
@click.option("--no-objects", is_flag=True, help="Do not count the objects of the buckets.")
@click.option("--objects", "all_objects", is_flag=True, help="Count all objects, without the limit of 20 s.")
@json_option
def command(plan_path: Path, queue: str | None, no_objects: bool, all_objects: bool, as_json: bool) -> None:
    """Count entries by form of key, objects by bucket, batches by queue and status; write nothing.

    With several queues, each has a line, in the order in which they hand on; the slowest sets the rate of all. With
    one, or --queue, entries are counted by outcome. A migration is done when all its queues are.

    Counting objects takes one request per thousand. After 20 s it stops and shows "at least" (≥); --objects counts them
    all, --no-objects none.
    """
    from rich.console import Console

    from rowferry.db.connection import connect
    from rowferry.plan_file import read_plan
    from rowferry_cli.reporter import show_spinner
    from rowferry_cli.status.counts import WITHIN
    from rowferry_cli.status.data import read_data_status
    from rowferry_cli.status.tables import print_data_status

    plan = read_plan(plan_path)
    with connect("status", autocommit=True) as connection, show_spinner() as on_progress:
        status = read_data_status(
            connection,
            plan,
            queue=queue,
            count_objects=not no_objects,
            within=None if all_objects else WITHIN,
            on_progress=on_progress,
        )
        if status.initialised:
            choose_queue(connection, queue, plan.name)
    if as_json:
        click.echo(format_json(status.as_document(), indent=2))
    else:
        print_data_status(status, Console(highlight=False))
