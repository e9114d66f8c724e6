"""`rowferry plan`: an example plan, a plan for what a database holds, or your plan in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry_cli.command import Command, Group
from rowferry_cli.options import json_option, plan_option

if TYPE_CHECKING:
    from rowferry_cli.discover.choose_rows import Rows

GROUPS = (
    Group(
        "Buckets", "With --discover: where the URL alone does not say it.", ("--legacy-region", "--production-region")
    ),
    Group("Rows", "With --discover: what becomes of rows that hold keys. Without these it asks.", ("--to", "--rows")),
    Group("Sample", "With --discover: how much is looked at.", ("--sample",)),
    Group("Scripts", "What a program reads.", ("--json",)),
)


def complete_known(_context: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    """Return the names of known schemas that begin so, for the shell."""
    from rowferry_cli.discover.known import list_names

    return [name for name in list_names() if name.startswith(begun)]


@click.command("plan", cls=Command, groups=GROUPS)
@click.argument("fields", nargs=-1, metavar="[TABLE.COLUMN]...")
@click.option("--example", is_flag=True, help="Print a commented example to save as rowferry.toml.")
@click.option("--discover", is_flag=True, help="Look at the database and the legacy bucket, and write a plan.")
@click.option(
    "--for",
    "known",
    metavar="NAME",
    help="The same for an application that is known, or by a TOML file.",
    shell_complete=complete_known,
)
@click.option("--legacy", metavar="URL", help="The legacy bucket: https://server/bucket, or s3://bucket on AWS.")
@click.option("--production", metavar="URL", help="The production bucket.")
@click.option("--legacy-region", metavar="NAME", help="The legacy bucket's region.")
@click.option("--production-region", metavar="NAME", help="The production bucket's region.")
@click.option("--to", metavar="PREFIX", help="What new keys begin with in place of their folder, such as avatar/.")
@click.option(
    "--rows",
    type=click.Choice(["move", "stay"]),
    help="move: each row gets its new key as its object arrives (with --to). stay: no row changes, and the "
    "application is switched when all objects are copied.",
)
@click.option(
    "--sample",
    type=click.IntRange(1, 10_000),
    default=500,
    show_default=True,
    help="Rows of each column to look at.",
)
@json_option
@plan_option
def command(
    fields: tuple[str, ...],
    example: bool,
    discover: bool,
    known: str | None,
    legacy: str | None,
    production: str | None,
    legacy_region: str | None,
    production_region: str | None,
    to: str | None,
    rows: Rows | None,
    sample: int,
    as_json: bool,
    plan_path: Path,
) -> None:
    """Explain the plan in words, or say what is wrong with it; connects to nothing.

    With --discover, finds the columns that name objects of the legacy bucket, and writes the plan. Reads samples of
    rows in read-only transactions, and asks the bucket for their objects; writes nothing to either. Where rows hold
    keys, it asks whether they get new ones.

    \b
    To start:
      rowferry plan --discover --legacy URL --production URL --to avatar/
      rowferry plan --for discourse --legacy URL --production URL
      rowferry plan --example > rowferry.toml
    """
    from rowferry.plan_file import read_plan

    if example:
        click.echo(EXAMPLE.read_text(encoding="utf-8"), nl=False)
        return
    if to is not None and rows == "stay":
        raise click.UsageError("--to gives rows new keys, and --rows stay leaves them as they are: choose one")
    if discover or known:
        from rowferry.plan import LegacySide, ProductionSide
        from rowferry_cli.discover.command import Wanted, discover_plan
        from rowferry_cli.discover.side_options import SideOptions

        discover_plan(
            Wanted(
                plan_path=plan_path,
                schema=known,
                fields=fields,
                legacy=SideOptions(LegacySide, legacy, legacy_region),
                production=SideOptions(ProductionSide, production, production_region),
                sample=sample,
                to=to,
                rows=rows,
                as_json=as_json,
            )
        )
        return
    if fields or legacy or production or to or rows or as_json:
        raise click.UsageError("this needs --discover or --for")
    from rowferry_cli.setup.plan_words import describe_plan

    for line in describe_plan(read_plan(plan_path)):
        click.echo(line)


EXAMPLE = Path(__file__).with_name("example_plan.toml")
