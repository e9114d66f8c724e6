"""`rowferry resume`: let a paused migration go on."""

from pathlib import Path

import click

from rowferry_cli.options import plan_option


@click.command("resume", short_help="Let a paused migration go on.")
@click.argument("migration", required=False)
@click.option("--all", "every", is_flag=True, help="Resume every migration of this database.")
@plan_option
def command(migration: str | None, every: bool, plan_path: Path) -> None:
    """Let MIGRATION (left out: the plan's) go on after `rowferry pause`: idle workers claim again within seconds.

    The same as `update rowferry.migration set paused_at = null`.
    """
    from rowferry.db.connection import connect
    from rowferry.formatting import show_text
    from rowferry.reports.pause import resume
    from rowferry_cli.choose_migration import choose_one_or_all

    with connect("resume", autocommit=True) as connection:
        standings = resume(connection, choose_one_or_all(connection, migration, plan_path, every=every))
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
