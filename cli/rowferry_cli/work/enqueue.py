"""`rowferry enqueue`: one pass over the plan's tables."""

from pathlib import Path

import click

from rowferry.plan import OnConflict
from rowferry_cli.options import on_conflict_option, plan_option, yes_option
from rowferry_cli.usage import confirm


@click.command("enqueue")
@plan_option
@click.option(
    "-b", "--batch-size", default=100, show_default=True, type=click.IntRange(1, 100_000), help="Entries in a batch."
)
@click.option("-l", "--limit", type=click.IntRange(1), help="Entries at most; left out: all.")
@on_conflict_option
@click.option("-d", "--dry-run", is_flag=True, help="Say what would be enqueued; write nothing.")
@yes_option
def command(
    plan_path: Path, batch_size: int, limit: int | None, on_conflict: OnConflict, dry_run: bool, yes: bool
) -> None:
    """Cut the legacy entries into batches and put them in the queue: one pass.

    Run it as often as you like: what is waiting already is not added again, and entries that came later are picked
    up. Entries of batches in ERROR are waiting too, for `rowferry requeue`.
    """
    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry.formatting import count_batches, count_entries
    from rowferry.plan_file import read_plan
    from rowferry_enqueue.enqueue import Request, enqueue, preview
    from rowferry_enqueue.skipped import find_skipped

    plan = read_plan(plan_path)
    request = Request(batch_size, limit, on_conflict)
    with connect("enqueue", autocommit=True) as connection:
        check_version(connection)
        planned = preview(connection, plan, request)
        for table in planned:
            click.echo(f"{table.label}: {count_entries(table.entries)} in {count_batches(table.batches)} to enqueue")
        if left := find_skipped(connection, plan):
            click.echo(left.describe(plan.name))
        if dry_run or not any(table.batches for table in planned):
            click.echo("Dry run: nothing was written." if dry_run else "Nothing to enqueue.")
            return
        if not yes:
            confirm(f"Put them in the queue of migration {plan.name}?")
        done = enqueue(connection, plan, request)
    entries, batches = sum(table.entries for table in done), sum(table.batches for table in done)
    click.echo(f"Enqueued {count_entries(entries)} in {count_batches(batches)}. Next: `rowferry worker`, anywhere.")
