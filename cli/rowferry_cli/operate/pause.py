"""`rowferry pause` and `rowferry resume`."""

from pathlib import Path

import click

from rowferry_cli.options import plan_option


@click.command("pause")
@click.argument("migration", required=False)
@click.option("--all", "every", is_flag=True, help="Pause every migration of this database.")
@plan_option
def command(migration: str | None, every: bool, plan_path: Path) -> None:
    """Stop workers from claiming new batches of a migration; running batches finish.

    Workers notice at their next claim and wait: nothing needs a restart, `rowferry resume` is enough. The pause is a
    column in the database: `update rowferry.migration set paused_at = now()` does the same.
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


@click.command("resume")
@click.argument("migration", required=False)
@click.option("--all", "every", is_flag=True, help="Resume every migration of this database.")
@plan_option
def resume(migration: str | None, every: bool, plan_path: Path) -> None:
    """Resume a paused migration: idle workers claim again within seconds.

    The same as `update rowferry.migration set paused_at = null`.
    """
    from rowferry.db.connection import connect
    from rowferry.formatting import show_text
    from rowferry.reports import pause as pausing
    from rowferry_cli.choose_migration import choose_one_or_all

    with connect("resume", autocommit=True) as connection:
        standings = pausing.resume(connection, choose_one_or_all(connection, migration, plan_path, every=every))
    for standing in standings:
        how = "goes on" if standing.changed else "was not paused"
        click.echo(f"{standing.migration} {how}: open batches {standing.open_batches:,}, workers {standing.workers:,}.")
        if standing.pause_reason:
            click.echo(f"  it had been paused for: {show_text(standing.pause_reason)}")
            click.echo("  where that still is so, workers will pause it again")
        if standing.open_batches and not standing.workers:
            click.echo("Nobody works on them: start `rowferry worker`, anywhere.")
    if not standings:
        click.echo("There is no migration in this database.")
