"""`rowferry init`: the schema `rowferry`, and the rights to use it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from rowferry_cli.command import Command
from rowferry_cli.options import plan_option

if TYPE_CHECKING:
    from rowferry.db.schema import Initialised
    from rowferry.plan import Plan
    from rowferry_cli.setup.grants import Purpose


@click.command("init", cls=Command)
@click.option("--grants", "role", metavar="ROLE", help="Print the GRANTs that this role needs, as SQL; change nothing.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["enqueuer", "worker", "operator", "grafana", "all"]),
    default="all",
    show_default=True,
    help="With --grants: the role's purpose. An operator reads failures and requeues them; grafana (and the exporter) "
    "only reads the views.",
)
@click.option("--apply", is_flag=True, help="With --grants: also update the schema and run the GRANTs.")
@plan_option
@click.pass_context
def command(ctx: click.Context, role: str | None, purpose: str, apply: bool, plan_path: Path) -> None:
    """Create or update the schema `rowferry` in the database.

    Schema migrations are applied once, functions and views every time. Run it after each update of rowferry, on any
    host; running it twice at once is safe. It touches no other schema.

    \b
    For the minimal rights of a role, including the plan's tables:
      rowferry init --grants app_worker --for worker            prints SQL to review and pipe into psql
      rowferry init --grants app_worker --for worker --apply    runs it
    """
    if role is None:
        for option, given in (("--apply", apply), ("--for", _is_given(ctx, "purpose"))):
            if given:
                raise click.UsageError(f"{option} needs --grants")
        _initialise(plan_path)
        return
    if not role:
        raise click.UsageError("--grants needs the name of a role")
    purposes: Sequence[Purpose] = _list_purposes(purpose)
    plan = _find_plan(ctx, plan_path)
    if apply:
        _initialise(plan_path)
    _grant(role, purposes, plan, apply=apply)


def _is_given(ctx: click.Context, parameter: str) -> bool:
    return ctx.get_parameter_source(parameter) is not ParameterSource.DEFAULT


def _list_purposes(purpose: str) -> Sequence[Purpose]:
    from rowferry_cli.setup.grants import PURPOSES

    return [known for known in PURPOSES if purpose in {known, "all"}]


def _find_plan(ctx: click.Context, path: Path) -> Plan | None:
    """Return the plan; None when there is no plan file and none was named."""
    from rowferry.plan_file import read_plan

    return read_plan(path) if _is_given(ctx, "plan_path") or path.exists() else None


def _initialise(plan_path: Path) -> None:
    from rowferry.db.connection import connect, name_database
    from rowferry.db.schema import initialise

    with connect("init", autocommit=True) as connection:
        done = initialise(connection)
    for line in _describe(done, name_database()):
        click.echo(line)
    plan = "" if plan_path.exists() else ", with a plan: `rowferry plan --discover` writes one"
    click.echo(f"Next: `rowferry migrate --dry-run`{plan}.")


def _describe(done: Initialised, database: str) -> list[str]:
    """Return what was done, in lines."""
    from rowferry import __version__

    versions = __version__ if done.version_before == __version__ else f"{done.version_before or 'new'} → {__version__}"
    names = ", ".join(done.migrations) or "none, all were applied before"
    are_due = done.migrations and done.version_before is not None
    return [
        f"Schema rowferry in {database}",
        f"  version     {versions}",
        f"  migrations  {names}",
        f"  replaced    {done.functions} functions, {done.views} views",
        *(["  grants      run `rowferry init --grants` again for each role of rowferry"] if are_due else []),
    ]


def _grant(role: str, purposes: Sequence[Purpose], plan: Plan | None, *, apply: bool) -> None:
    """Print the grants, and what limits the role's sessions; run them with `apply`."""
    from rowferry.db.connection import connect
    from rowferry_cli.setup.grants import apply_grants, apply_limits, compose_grants, compose_limits

    grants, limits = compose_grants(role, purposes, plan), compose_limits(role, purposes)
    words = [grants.as_string().rstrip(), *([limits.as_string()] if limits else [])]
    if apply:
        with connect("init", autocommit=True) as connection:
            apply_grants(connection, grants)
            if limits and not apply_limits(connection, limits):
                words.insert(1, f"-- NOT RUN, since you may not change the role {role}: let an administrator run this.")
        click.echo(f"Granted to {role}:\n")
    click.echo("\n".join(words))
    if plan is None:
        click.echo("\n-- No plan found, so the grants on the tables to migrate are missing: add --plan.")
