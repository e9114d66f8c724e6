"""`rowferry watch`: a live view of a migration."""

from datetime import timedelta
from pathlib import Path

import click

from rowferry_cli.command import Command
from rowferry_cli.migration import choose_migration, choose_queue, migration_option, queue_option
from rowferry_cli.options import Duration


@click.command("watch", cls=Command)
@migration_option
@queue_option
@click.option(
    "--interval", default=2.0, show_default=True, type=Duration(least=0.1), help="Seconds between two readings."
)
@click.option("--once", is_flag=True, help="Print the view once, as without a terminal.")
def command(migration: str | None, plan_path: Path, queue: str | None, interval: timedelta, once: bool) -> None:
    """Show a migration live: progress by queue and table, rate, time left, what holds it up, workers, latest errors.

    With several queues, each has a line. The rest of the view is about one of them: the first that is not done, or the
    one that --queue or the key n chooses. The migration is done when all are.

    Keys: p pauses the migration, r resumes it, n goes to the next queue, ? explains the keys, q quits. Work continues
    when you quit. Watching needs only the database, and reads it for at most a tenth of the time.

    docs/runbook.md says what to do in each state.
    """
    from rich.console import Console

    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry_cli.watch.app import watch, watch_once

    console = Console(highlight=False)
    with connect("watch", autocommit=True) as connection:
        check_version(connection)
        chosen = choose_migration(connection, migration, plan_path)
        choose_queue(connection, queue, chosen)
        if once or not console.is_terminal or console.is_dumb_terminal:
            watch_once(connection, chosen, queue, console)
            return
    watch(chosen, queue, interval, console)
