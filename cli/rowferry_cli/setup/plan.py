"""`rowferry plan`: an example plan, or your plan in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry_cli.command import Command
from rowferry_cli.messages import describe_direction
from rowferry_cli.options import plan_option

if TYPE_CHECKING:
    from rowferry.plan import Entries, Plan


@click.command("plan", cls=Command)
@click.option("--example", is_flag=True, help="Print a commented example to save as rowferry.toml.")
@plan_option
def command(example: bool, plan_path: Path) -> None:
    """Explain the plan in words, or say what is wrong with it; connects to nothing.

    \b
    To start:
      rowferry plan --example > rowferry.toml
    """
    from rowferry.plan_file import read_plan

    if example:
        click.echo(EXAMPLE.read_text(encoding="utf-8"), nl=False)
        return
    for line in describe_plan(read_plan(plan_path)):
        click.echo(line)


EXAMPLE = Path(__file__).with_name("example_plan.toml")


def describe_plan(plan: Plan) -> Iterator[str]:
    """Yield the plan in words."""
    simulated = " (simulated: `rowferry prepare` may delete all of it)" if plan.migration.simulated else ""
    yield f"Migration {plan.name}{simulated}"
    yield from describe_direction(plan)
    copies = "the production server copies them itself" if plan.server_side else "workers download and upload them"
    yield f"  objects: {copies}; at most {plan.migration.max_attempts} attempts per batch"
    for entries in plan.entries:
        yield from _describe_entries(entries)
    for objects in plan.objects:
        yield "  objects without rows"
        yield f"    {objects.prefix}…  becomes  {objects.production_object_prefix}…"


def _describe_entries(entries: Entries) -> Iterator[str]:
    yield f"  rows of {entries.table} by {entries.id_words}{f', where {entries.where}' if entries.where else ''}"
    yield f"    {entries.key}: {entries.legacy_prefix}…  becomes  {entries.production_prefix}…"
