"""`rowferry enqueue`: one pass over the plan's tables."""

from pathlib import Path

import click

from rowferry.plan import OnConflict
from rowferry_cli.command import Command
from rowferry_cli.messages import DRY_RUN, confirm, describe_enqueued
from rowferry_cli.options import batch_size_option, limit_option, on_conflict_option, plan_option, yes_option


@click.command("enqueue", cls=Command)
@plan_option
@batch_size_option
@limit_option
@on_conflict_option
@click.option("-d", "--dry-run", is_flag=True, help="Show what would be enqueued; write nothing.")
@yes_option
def command(
    plan_path: Path, batch_size: int, limit: int | None, on_conflict: OnConflict | None, dry_run: bool, yes: bool
) -> None:
    """Put the legacy entries into the queue, in batches: one pass.

    Run it as often as you like: entries that are in the queue already are not added again, later ones are found.
    Entries of batches in ERROR stay there until `rowferry requeue`; where rows stay, each pass takes them again.
    """
    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry.plan_file import read_plan
    from rowferry_enqueue.enqueue import Request, enqueue, preview
    from rowferry_enqueue.skipped import find_skipped
    from rowferry_queues.migrate.spec import MIGRATE, MigrateChoices

    plan = read_plan(plan_path)
    request = Request(MIGRATE, batch_size, limit, MigrateChoices(on_conflict=on_conflict))
    with connect("enqueue", autocommit=True) as connection:
        check_version(connection)
        planned = preview(connection, plan, request)
        for table in planned:
            click.echo(f"{table}{'' if table.goes_on else ' to enqueue'}")
        if left := find_skipped(connection, plan, MIGRATE.name):
            click.echo(left.describe(plan.name))
        if dry_run or not any(table.batches for table in planned):
            click.echo(DRY_RUN if dry_run else "Nothing to enqueue.")
            return
        if not yes:
            confirm(f"Put them into the queue of migration {plan.name}?")
        done = enqueue(connection, plan, request)
    click.echo(describe_enqueued(sum(table.entries for table in done), sum(table.batches for table in done)))
