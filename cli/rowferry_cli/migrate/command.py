"""`rowferry migrate`: a whole migration in one command, with workers on this host."""

from pathlib import Path
from typing import Any

import click

from rowferry_cli.command import Command, Group
from rowferry_cli.options import (
    WORKERS,
    allow_empty_option,
    batch_size_option,
    limit_option,
    on_conflict_option,
    plan_option,
    worker_options,
    yes_option,
)

GROUPS = (
    Group(
        "Checks",
        "What is looked at before anything is written.",
        ("--status-only", "--no-objects", "--allow-empty"),
    ),
    WORKERS,
    Group("Messages", "What is shown and kept of the work.", ("--verbose", "--log-file")),
    Group("Short forms", "Less to type.", ("--overwrite",)),
)


@click.command("migrate", cls=Command, groups=GROUPS)
@plan_option
@batch_size_option
@worker_options
@limit_option
@click.option("-w", "--overwrite", is_flag=True, help="The same as --on-conflict overwrite.")
@on_conflict_option
@allow_empty_option
@click.option("--no-objects", is_flag=True, help="Do not count the objects of the buckets.")
@click.option("-v", "--verbose", is_flag=True, help="Print a line for each object and each row.")
@click.option("-d", "--dry-run", is_flag=True, help="Check and show what would be done; write nothing.")
@click.option("-s", "--status-only", is_flag=True, help="Show the status of the data and stop.")
@yes_option
def command(plan_path: Path, **options: Any) -> int:
    """Copy the objects and update the rows: check, show, enqueue, work, until no legacy entry is left.

    Objects are copied from the legacy bucket, which is only read, to the production bucket, which is written. Nothing
    is deleted. It checks first, as `rowferry check` does, shows what it found, and asks before it migrates anything.
    Stop it at any time (Ctrl-C) and run it again: it continues. In the end it lists the legacy objects, and
    verifies and repairs those that were rewritten meanwhile.

    Where rows change, your application must find objects in both buckets before you migrate.

    Exit status: 0 all migrated, 1 something failed (see `rowferry errors`), 2 a mistake in plan or settings. With
    --dry-run that of `rowferry check`: 1 a named part would not be migrated.
    """
    from rowferry.plan_file import read_plan
    from rowferry_cli.migrate.run import MigrateOptions, run_migrate

    return run_migrate(read_plan(plan_path), MigrateOptions(**options))
