"""`rowferry pause`: let no more batches be claimed."""

from pathlib import Path

import click

from rowferry_cli.options import plan_option


@click.command("pause", short_help="Let workers claim nothing more of a migration; nothing in hand is lost.")
@click.argument("migration", required=False)
@click.option("--all", "every", is_flag=True, help="Pause every migration of this database.")
@plan_option
def command(migration: str | None, every: bool, plan_path: Path) -> None:
    """Pause MIGRATION (left out: the plan's): workers claim nothing more of it, batches in hand are finished.

    Workers notice at their next claim and go on waiting, so nothing needs to be restarted: `rowferry resume` is all
    that it takes. It is a fact in the database: `update rowferry.migration set paused_at = now()` does the same.
    """
    from rowferry.db.connection import connect
    from rowferry.reports.pause import pause
    from rowferry_cli.choose_migration import choose_one_or_all

    with connect("pause", autocommit=True) as connection:
        standings = pause(connection, choose_one_or_all(connection, migration, plan_path, every=every))
    for standing in standings:
        how = "paused" if standing.changed else f"paused already, since {standing.paused_at:%Y-%m-%d %H:%M:%S %Z}"
        click.echo(f"{standing.migration} is {how}.")
        if standing.pause_reason:
            click.echo(f"  reason: {standing.pause_reason}")
        click.echo(f"  batches in hand, which will be finished: {standing.in_hand:,}")
        click.echo(f"  batches that wait for `rowferry resume {standing.migration}`: {standing.waiting:,}")
    if not standings:
        click.echo("There is no migration in this database.")
