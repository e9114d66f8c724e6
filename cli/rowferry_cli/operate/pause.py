"""`rowferry pause` and `rowferry resume`."""

from pathlib import Path

import click

from rowferry.formatting import count, count_batches, show_text
from rowferry_cli.command import Command
from rowferry_cli.migration import all_migrations_option, choose_one_or_all, choose_queue, migration_option

queue_option = click.option("--queue", metavar="NAME", help="This queue of the migration alone.")


@click.command("pause", cls=Command)
@click.option(
    "--reason", metavar="TEXT", help="Why, as `rowferry status`, `rowferry watch` and the dashboards show it."
)
@queue_option
@migration_option
@all_migrations_option
def command(
    reason: str | None, queue: str | None, migration: str | None, plan_path: Path, all_migrations: bool
) -> None:
    """Stop workers from claiming new batches of a migration, or of one of its queues; running batches finish.

    Workers keep running and notice at their next claim, so nothing needs a restart. The pause is a column in the
    database: `update rowferry.migration set paused_at = now()` does the same.
    """
    from rowferry.db.connection import connect
    from rowferry_cli.status.pause import pause

    with connect("pause", autocommit=True) as connection:
        chosen = choose_one_or_all(connection, migration, plan_path, all_migrations=all_migrations)
        statuses = pause(connection, chosen, queue, reason or None)
        if not statuses:
            choose_queue(connection, queue, chosen)
    for status in statuses:
        already = "" if status["changed"] else f" already, since {status['paused_at']:%Y-%m-%d %H:%M:%S %Z}"
        click.echo(f"{_name(status['migration'], queue)} is paused{already}.")
        if status["pause_reason"]:
            click.echo(f"  reason: {show_text(status['pause_reason'])}")
        click.echo(f"  running batches, which will finish: {status['claimed']:,}")
        click.echo(f"  waiting batches: {status['waiting']:,}")
        one = "" if queue is None else f" --queue {queue}"
        click.echo(f"  to continue: rowferry resume{one} --migration {status['migration']}")
    if not statuses:
        click.echo("This database has no migration.")


def _name(migration: str, queue: str | None) -> str:
    return migration if queue is None else f"Queue {queue} of {migration}"


@click.command("resume", cls=Command)
@queue_option
@migration_option
@all_migrations_option
def resume(queue: str | None, migration: str | None, plan_path: Path, all_migrations: bool) -> None:
    """Resume a paused migration, or one of its queues: idle workers claim its batches within seconds.

    The same as `update rowferry.migration set paused_at = null`.
    """
    from rowferry.db.connection import connect
    from rowferry_cli.status import pause

    with connect("resume", autocommit=True) as connection:
        chosen = choose_one_or_all(connection, migration, plan_path, all_migrations=all_migrations)
        statuses = pause.resume(connection, chosen, queue)
        if not statuses:
            choose_queue(connection, queue, chosen)
    for status in statuses:
        how = "is resumed" if status["changed"] else "was not paused"
        counts = f"{count_batches(status['open_batches'])} open, {count(status['workers'], 'worker', 'workers')} alive"
        click.echo(f"{_name(status['migration'], queue)} {how}: {counts}.")
        if status["pause_reason"]:
            click.echo(f"  it was paused because: {show_text(status['pause_reason'])}")
            if status["paused_by_worker"]:
                click.echo("  workers pause it again if that is still so")
        if status["open_batches"] and not status["workers"]:
            click.echo("  no worker is running: start `rowferry worker` on any host, or run `rowferry migrate`")
    if not statuses:
        click.echo("This database has no migration." if queue is None else f"Queue {queue} was not paused.")
