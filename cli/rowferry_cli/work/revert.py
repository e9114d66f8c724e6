"""`rowferry revert`: point rows back at their legacy objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry_cli.options import batch_size_option, crew_options, plan_option, within_options, yes_option

if TYPE_CHECKING:
    from rowferry.batch import Outcome


@click.command("revert")
@plan_option
@within_options
@batch_size_option
@crew_options
@yes_option
def command(
    plan_path: Path,
    table: str | None,
    first: str | None,
    last: str | None,
    batch_size: int,
    processes: int,
    parallel: int,
    log_file: Path | None,
    yes: bool,
) -> int:
    """Put the rows of a migration back to their legacy keys: all of them, one table, or a range of ids.

    Only rows whose legacy object is there are put back, so every row goes on pointing at an object; those that were
    production from the beginning stay. No object is written or deleted. Objects that your application has written
    under production keys since are not carried back: their rows show what the legacy object holds.

    Exit status: 0 all put back, 1 something failed (see `rowferry errors`).
    """
    from rowferry.db.connection import connect, name_database
    from rowferry.db.schema import check_version
    from rowferry.errors import UsageError
    from rowferry.formatting import count_batches, count_entries
    from rowferry.plan_file import read_plan
    from rowferry.reports.progress import read_counts
    from rowferry_cli.run.one_pass import Crew, run_one_pass
    from rowferry_cli.run.screen import Screen
    from rowferry_enqueue.enqueue import Request, Within, preview
    from rowferry_enqueue.skipped import find_skipped

    plan = read_plan(plan_path)
    screen = Screen(yes=yes, meanings=_meanings())
    request = Request(batch_size, queue="revert", within=Within(table, first, last))
    with connect("revert", autocommit=True) as connection:
        check_version(connection)
        before = read_counts(connection, plan.name)
        if before.batches_init:
            raise UsageError(
                f"{count_batches(before.batches_init)} of migration {plan.name} still wait to migrate, and would move "
                "on what is put back; let the workers finish them, or delete them from rowferry.batch_queue."
            )
        planned = preview(connection, plan, request)
        for found in planned:
            screen.say(f"{found.label} in {name_database()}: {count_entries(found.entries)} to put back")
        if before.batches_error:
            screen.say(
                f"{count_batches(before.batches_error)} of migration {plan.name} in ERROR: a later `rowferry "
                "migrate` leaves the rows of such a batch alone until `rowferry requeue`."
            )
        screen.ask(f"Point these rows back at the legacy bucket {plan.legacy.bucket}?")
        crew = Crew(processes=processes, parallel=parallel, log_file=log_file)
        unsettled = "could not be put back, and stay production"
        status = run_one_pass(connection, plan, request, crew, screen, unsettled=unsettled)
        if processes and (left := find_skipped(connection, plan)):
            screen.say(f"In the next `rowferry migrate`, {left.describe(plan.name)}")
        return status


def _meanings() -> dict[Outcome, str]:
    from rowferry.batch import Outcome

    return {
        Outcome.MIGRATED: "row put back to its legacy key",
        Outcome.KEPT: "stays production: there is no legacy object",
        Outcome.CHANGED: "the application rewrote the row meanwhile",
        Outcome.DELETED: "the row was deleted meanwhile",
        Outcome.MISSING: "no legacy object",
        Outcome.CONFLICT: "does not occur",
        Outcome.FAILED: "the database or the server refused",
    }
