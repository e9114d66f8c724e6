"""`rowferry prepare`: a simulated environment to try a migration in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry_cli.command import Command
from rowferry_cli.messages import confirm
from rowferry_cli.options import plan_option, yes_option

if TYPE_CHECKING:
    from rowferry.plan import Plan


@click.command(
    "prepare", cls=Command, short_help="Make a simulated environment: a table and two buckets of small images."
)
@click.argument("count", metavar="N", type=click.IntRange(1, 100_000_000))
@plan_option
@click.option("-c", "--clean-production", is_flag=True, help="Delete all objects of the production bucket, too.")
@click.option(
    "--role-password",
    envvar="ROWFERRY_ROLE_PASSWORD",
    show_envvar=True,
    help="Let the migration role log in with this password (or the one in the file that ..._FILE names); "
    "left out: it cannot log in.",
)
@click.option("--once", is_flag=True, help="Do nothing if the plan's tables are there already.")
@yes_option
def command(
    count: int,
    plan_path: Path,
    clean_production: bool,
    role_password: str | None,
    once: bool,
    yes: bool,
) -> None:
    """Make N rows and their images, half of them legacy, half production, to try a migration with.

    DELETES what is there: drops and creates the plan's tables, and deletes all objects of the legacy bucket.
    It therefore refuses to run unless the plan's [migration] says `simulated = true`. It also makes the role
    rowferry_<migration>, which may do what a migration needs and nothing else.

    No other command deletes rows of yours or objects that it has not made. (`check` removes its probes,
    `clean-uploads` aborts unfinished uploads, `prune` deletes batches of the queue.)
    """
    from rowferry.db.connection import connect
    from rowferry.environment import read_secret
    from rowferry.plan_file import read_plan
    from rowferry_cli.reporter import Reporter
    from rowferry_lab.simulated.buckets import refuse_real_data
    from rowferry_lab.simulated.prepare import prepare
    from rowferry_lab.simulated.tables import are_there

    plan = read_plan(plan_path)
    plan.require_both_sides()
    refuse_real_data(plan)
    role_password = role_password or read_secret(os.environ, "ROWFERRY_ROLE_PASSWORD") or None
    if once:
        with connect("prepare", autocommit=True) as connection:
            if are_there(connection, plan):
                click.echo(f"The tables of {plan.name} are there already: nothing was done.")
                return
    _warn(plan, clean_production=clean_production)
    if not yes:
        confirm("Delete them and go on?")
    with connect("prepare", autocommit=True) as connection, Reporter(yes=True).show_activity("making images") as show:
        prepared = prepare(
            connection,
            plan,
            count,
            clean_production=clean_production,
            role_password=role_password,
            on_progress=lambda done: show(f"{done:,} of {count:,} rows and their images"),
        )
    images = prepared.images
    click.echo(
        f"Made {count:,} rows with {images['legacy']:,} images in {plan.legacy.bucket} and "
        f"{images['production']:,} in {plan.production.bucket}."
    )
    click.echo(prepared.role)


def _warn(plan: Plan, *, clean_production: bool) -> None:
    from rowferry.db.connection import name_database

    tables = ", ".join(dict.fromkeys(entries.table for entries in plan.entries))
    buckets = [plan.legacy.bucket, *([plan.production.bucket] if clean_production else [])]
    click.echo(f"This drops and creates:     {tables} in {name_database()}")
    for bucket, side in zip(buckets, (plan.legacy, plan.production), strict=False):
        click.echo(f"This empties:               s3://{bucket} at {side.endpoint_url or 'AWS'}")
