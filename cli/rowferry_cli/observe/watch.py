"""`rowferry watch`: a live view of a migration."""

from datetime import timedelta
from pathlib import Path

import click

from rowferry_cli.command import Command
from rowferry_cli.migration import choose_migration, migration_option
from rowferry_cli.options import Seconds


@click.command("watch", cls=Command)
@migration_option
@click.option("--interval", default=2.0, show_default=True, type=Seconds(0.1), help="Seconds between two readings.")
@click.option("--once", is_flag=True, help="Print the view once; needs no terminal.")
def command(migration: str | None, plan_path: Path, interval: float, once: bool) -> None:
    """Show a migration live: progress by table, rate, time left, workers and their batches, the latest errors.

    Keys: p pauses, r resumes, e requeues all batches in ERROR (after a question), q quits. The work goes on when you
    quit. Watching needs only the database, and reads it for at most a tenth of the time.
    """
    from rich.console import Console

    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry_cli.watching.app import watch, watch_once

    console = Console(highlight=False)
    with connect("watch", autocommit=True) as connection:
        check_version(connection)
        chosen = choose_migration(connection, migration, plan_path)
        if once:
            watch_once(connection, chosen, console)
            return
    if not console.is_terminal:
        click.echo("No terminal: views follow one another until Ctrl-C; --once prints one.", err=True)
    watch(chosen, timedelta(seconds=interval), console)
