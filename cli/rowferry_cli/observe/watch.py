"""`rowferry watch`: the live picture of a migration."""

from datetime import timedelta
from pathlib import Path

import click

from rowferry_cli.durations import Seconds
from rowferry_cli.options import plan_option


@click.command("watch")
@plan_option
@click.option("--migration", help="Which one; left out: the plan's, or the only one there is.")
@click.option("--interval", default=2.0, show_default=True, type=Seconds(0.1), help="Seconds between two readings.")
@click.option("--once", is_flag=True, help="Print one frame and stop; needs no terminal.")
def command(plan_path: Path, migration: str | None, interval: float, once: bool) -> None:
    """Show a migration live: progress by table, rate, time left, workers and what they hold, the last errors.

    Keys: p pauses, r resumes, e requeues what is in ERROR (it asks first), q quits; the work goes on without you.
    Whoever watches needs the database and nothing else, and takes at most a tenth of the time to read it.
    """
    from rich.console import Console

    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry_cli.choose_migration import choose_migration
    from rowferry_cli.watching.app import watch, watch_once

    console = Console(highlight=False)
    with connect("watch", autocommit=True) as connection:
        check_version(connection)
        chosen = choose_migration(connection, migration, plan_path)
        if once:
            watch_once(connection, chosen, console)
            return
    if not console.is_terminal:
        click.echo("There is no terminal: frames follow one another until Ctrl-C; --once prints one.", err=True)
    watch(chosen, timedelta(seconds=interval), console)
