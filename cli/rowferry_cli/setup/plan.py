"""`rowferry plan`: an example of a plan, or what a plan says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry_cli.options import plan_option

if TYPE_CHECKING:
    from rowferry.plan import Entries, Plan, Side


@click.command("plan")
@click.option("--example", is_flag=True, help="Print a commented example, to be saved as rowferry.toml.")
@plan_option
def command(example: bool, plan_path: Path) -> None:
    """Say in words what the plan means, or what is wrong with it; connect to nothing.

    \b
    To begin:
      rowferry plan --example > rowferry.toml
    """
    from rowferry.plan_file import read_plan

    if example:
        click.echo(EXAMPLE.read_text(encoding="utf-8"), nl=False)
        return
    for line in tell_plan(read_plan(plan_path)):
        click.echo(line)


EXAMPLE = Path(__file__).with_name("example_plan.toml")


def tell_plan(plan: Plan) -> Iterator[str]:
    """Yield the plan in words."""
    simulated = " (simulated: `rowferry prepare` may delete all of it)" if plan.migration.simulated else ""
    yield f"Migration {plan.name}{simulated}"
    yield f"  from  {_tell_side(plan.legacy)} (legacy: only read)"
    yield f"  to    {_tell_side(plan.production)} (production: written)"
    copies = "the production server copies them by itself" if plan.server_side else "workers read and write them"
    yield f"  objects: {copies}; a batch is tried {plan.migration.max_attempts} times"
    for entries in plan.entries:
        yield from _tell_entries(entries)


def _tell_side(side: Side) -> str:
    place = side.endpoint_url or f"AWS, {side.region}"
    profile = f", profile {side.profile}" if side.profile else ""
    return f"s3://{side.bucket} at {place}{profile}"


def _tell_entries(entries: Entries) -> Iterator[str]:
    yield f"  rows of {entries.table} by {entries.id}{f', where {entries.where}' if entries.where else ''}"
    yield f"    {entries.key}: {entries.legacy_prefix}…  becomes  {entries.production_prefix}…"
