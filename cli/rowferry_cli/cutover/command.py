"""`rowferry cutover`: up to the moment at which the application is switched, and past it."""

from pathlib import Path
from typing import Any

import click

from rowferry_cli.command import Command, Group
from rowferry_cli.options import (
    LOG_FILE,
    WORKERS,
    batch_size_option,
    json_option,
    on_conflict_option,
    plan_option,
    worker_options,
    yes_option,
)

OTHER = Group("Other ways", "Rarely needed.", ("--switched-back", "--on-conflict"))


@click.command("cutover", cls=Command, groups=(OTHER, WORKERS, LOG_FILE))
@plan_option
@click.option("--finish", is_flag=True, help="The application is switched: make the last pass, and verify.")
@click.option("--switched-back", is_flag=True, help="The application is back at the legacy bucket: begin anew.")
@on_conflict_option
@batch_size_option
@worker_options
@json_option
@yes_option
def command(plan_path: Path, **options: Any) -> int:
    """Bring an application whose rows stay as they are to the production bucket, without downtime.

    \b
    1. It repeats passes, each over what changed since the one before, and shows
       how long each took, what it copied, and what is left.
    2. It says when to switch the application: when a pass has copied nothing, or
       took 80 % of the time of the one before or longer, so that passes get no
       shorter.
    3. You switch the application and press Enter. Passes go on meanwhile.
    4. It makes the last pass, then compares every object, and copies again what is
       missing or older than its legacy object.

    Without a terminal it ends at step 2: switch the application, then run `rowferry cutover --finish`. Stop it at any
    time (Ctrl-C), even by force, and run it again: it continues. The legacy bucket is only read.

    Where rows move, there is no moment to wait for: it repeats passes until no legacy entry is left.

    Exit status: 0 the moment has come, or all is verified; 1 entries are left (see `rowferry errors`), or the migration
    is paused; 2 a mistake in plan or settings.
    """
    from rowferry.plan_file import read_plan
    from rowferry_cli.cutover.run import CutoverOptions, run_cutover

    return run_cutover(read_plan(plan_path), CutoverOptions(**options))
