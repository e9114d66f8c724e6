"""`rowferry verify`: hold every production object against its legacy object."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry_cli.options import batch_size_option, crew_options, plan_option, within_options, yes_option

if TYPE_CHECKING:
    from rowferry.batch import Outcome


@click.command("verify")
@plan_option
@within_options
@click.option("--deep", is_flag=True, help="Read the bytes of both objects, whatever their ETags say.")
@click.option("--repair", is_flag=True, help="Copy again what is missing, or older than its legacy object.")
@click.option(
    "--overwrite", is_flag=True, help="With --repair: also where the production object differs and was written last."
)
@batch_size_option
@crew_options
@yes_option
def command(
    plan_path: Path,
    table: str | None,
    first: str | None,
    last: str | None,
    deep: bool,
    repair: bool,
    overwrite: bool,
    batch_size: int,
    processes: int,
    parallel: int,
    log_file: Path | None,
    yes: bool,
) -> int:
    """Hold the object of every production entry against its legacy object: readable, and equal.

    Compared are sizes, then ETags where they mean something, checksums, or else the bytes. Rows stay as they are.

    With --repair it is the second pass of a migration: what the application wrote under legacy keys after it had been
    copied is copied again. A production object that was written after its legacy object may be the application's own
    work, and is reported, not replaced, unless --overwrite says so.

    Exit status: 0 all equal or repaired, 1 something is missing or differs (see `rowferry errors`).
    """
    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry.plan_file import read_plan
    from rowferry_cli.run.one_pass import Crew, run_one_pass
    from rowferry_cli.run.screen import Screen
    from rowferry_enqueue.enqueue import Request, Within

    if overwrite and not repair:
        raise click.UsageError("--overwrite says what --repair may replace: name both")
    plan = read_plan(plan_path)
    screen = Screen(yes=yes, meanings=_meanings())
    request = Request(
        batch_size,
        queue="verify",
        within=Within(table, first, last),
        deep=deep,
        repair="all" if overwrite else "older" if repair else "nothing",
    )
    with connect("verify", autocommit=True) as connection:
        check_version(connection)
        if repair:
            what = "that differ" if overwrite else "that are missing or older than their legacy objects"
            screen.ask(f"Copy the objects of migration {plan.name} {what} to {plan.production.bucket} again?")
        crew = Crew(processes=processes, parallel=parallel, log_file=log_file)
        return run_one_pass(connection, plan, request, crew, screen, unsettled="not as they should be")


def _meanings() -> dict[Outcome, str]:
    from rowferry.batch import Outcome

    return {
        Outcome.MIGRATED: "missing or different, copied again",
        Outcome.KEPT: "equal; or readable, where there is no legacy object",
        Outcome.CHANGED: "the application rewrote the row meanwhile",
        Outcome.DELETED: "the row was deleted meanwhile",
        Outcome.MISSING: "no production object: the row points at nothing",
        Outcome.CONFLICT: "the production object differs",
        Outcome.FAILED: "anything else: could not be read or compared",
    }
