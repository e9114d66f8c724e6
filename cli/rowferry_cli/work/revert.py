"""`rowferry revert`: point rows back at their legacy objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rowferry_cli.command import Command
from rowferry_cli.options import LOG_FILE, WORKERS, PassOptions, pass_options

if TYPE_CHECKING:
    from rowferry.db.connection import Connection
    from rowferry.plan import Plan
    from rowferry_cli.reporter import Reporter
    from rowferry_enqueue.enqueue import EnqueueRequest


@click.command("revert", cls=Command, groups=(WORKERS, LOG_FILE))
@pass_options
@click.option("--keep-newer", is_flag=True, help="Leave rows whose production object differs and was written last.")
def command(options: PassOptions, keep_newer: bool) -> int:
    """Put the rows of a migration back to their legacy keys: all rows, one table, or a range of ids.

    A row is reverted only if its legacy object exists, so every row keeps pointing at an object. Rows that were
    production from the start stay, and so do those of `rows = "stay"`. No object is written or deleted. Objects that
    your application has written under production keys since are not copied back: their rows show the legacy object
    again, unless you say --keep-newer. Up to 1,000 rows are compared before it asks, and it says how many show older
    bytes then.

    Exit status: 0 all reverted, 1 some failed (see `rowferry errors`).
    """
    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry.plan_file import read_plan
    from rowferry_cli.migrate.one_pass import run_one_pass
    from rowferry_cli.reporter import Reporter
    from rowferry_enqueue.enqueue import EnqueueRequest, Within
    from rowferry_enqueue.waiting_batches import describe_skipped
    from rowferry_queues.migrate.spec import MIGRATE
    from rowferry_queues.revert.spec import REVERT, RevertChoices

    plan = read_plan(options.plan_path)
    plan.require_both_sides()
    reporter = Reporter(yes=options.yes)
    within = Within(options.table, options.first, options.last)
    request = EnqueueRequest(REVERT, options.batch_size, choices=RevertChoices(keep_newer=keep_newer), within=within)
    with connect("revert", autocommit=True) as connection:
        check_version(connection)
        _preview(connection, plan, request, reporter, keep_newer=keep_newer)
        unsettled = "could not be reverted and stay production"
        status = run_one_pass(connection, plan, request, options, reporter, unsettled=unsettled)
        if options.processes != 0 and (words := describe_skipped(connection, plan, MIGRATE)):
            reporter.print(f"In the next `rowferry migrate`: {words}")
        return status


def _preview(
    connection: Connection, plan: Plan, request: EnqueueRequest, reporter: Reporter, *, keep_newer: bool
) -> None:
    """Show which rows would be reverted, and ask. Raises UsageError as `preview` does."""
    from rowferry.db.connection import name_database
    from rowferry.formatting import count_batches, count_entries
    from rowferry.reports.progress import read_counts
    from rowferry_enqueue.enqueue import preview
    from rowferry_queues.migrate.spec import MIGRATE

    tables = preview(connection, plan, request)
    staying = [entries for entries in request.within.choose(plan) if entries.rows == "stay"]
    without_rows = request.within.choose_objects(plan)
    for entries in staying:
        reporter.print(f"{entries.label}: its rows stay as they are, so they are not reverted.")
    for objects in without_rows:
        reporter.print(f"{objects.label}: no row names these objects, so they are not reverted.")
    if staying or without_rows:
        reporter.print(f"To go back, point the application at the legacy bucket {plan.legacy.bucket} again for these.")
    for table in tables:
        reporter.print(f"{table.label} in {name_database()}: {count_entries(table.entries)} to revert")
    if errors := read_counts(connection, plan.name, MIGRATE.name).batches_error:
        reporter.print(
            f"{count_batches(errors)} of migration {plan.name} in ERROR: a later `rowferry migrate` "
            "skips their rows until `rowferry requeue`."
        )
    if not keep_newer and any(table.entries for table in tables):
        _tell_older(connection, plan, request, reporter)
    reporter.confirm(f"Point these rows back at the legacy bucket {plan.legacy.bucket}?")


def _tell_older(connection: Connection, plan: Plan, request: EnqueueRequest, reporter: Reporter) -> None:
    """Say how many rows would show older bytes than now."""
    from rowferry.errors import RowferryError
    from rowferry_enqueue.older_objects import count_older

    try:
        with reporter.show_activity("comparing") as on_progress:
            older, sampled = count_older(connection, plan, request.choose(plan), request.within, on_progress)
    except RowferryError as error:
        reporter.print(f"How many rows would show older bytes is not known: {error}")
        return
    if older:
        reporter.print(
            f"Of {sampled:,} rows that were compared, {older:,} would show older bytes: their production objects were "
            "written last. --keep-newer leaves such rows as they are."
        )
