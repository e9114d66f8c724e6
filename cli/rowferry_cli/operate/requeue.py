"""`rowferry requeue`: give batches in ERROR another chance."""

from pathlib import Path

import click

from rowferry.plan import OnConflict
from rowferry_cli.command import Command, Group
from rowferry_cli.migration import (
    all_migrations_option,
    choose_one_or_all,
    choose_queue,
    migration_option,
    queue_option,
)

GROUPS = (
    Group("Which batches", "Fewer of them, or those of all migrations.", ("--queue", "--all-migrations")),
    Group("In scripts", "As of other commands.", ("--yes",)),
)


@click.command("requeue", cls=Command, groups=GROUPS)
@click.option("--all", "everything", is_flag=True, help="All batches in ERROR.")
@click.option("--batch", "batch_id", type=click.IntRange(1), metavar="ID", help="This batch, of any migration.")
@click.option(
    "--error-like",
    metavar="PATTERN",
    help="Batches whose error, or an entry's error or reason, is LIKE this pattern: % any text, _ any character.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(["older", "overwrite", "keep"]),
    help="Where a different object is at the production key: overwrite it if it is older than the legacy object, "
    "overwrite it, or keep it and point the row at it, whatever it holds. Requeues only batches of queues that have "
    "conflicts.",
)
@queue_option
@migration_option
@all_migrations_option
@click.option("-y", "--yes", is_flag=True, expose_value=False, help="Accepted, though nothing is asked.")
def command(
    everything: bool,
    batch_id: int | None,
    error_like: str | None,
    on_conflict: OnConflict | None,
    queue: str | None,
    migration: str | None,
    plan_path: Path,
    all_migrations: bool,
) -> None:
    """Put batches in ERROR back into the queue, due now, with all their attempts.

    Entries that are migrated stay migrated. The same in SQL:

    \b
      update rowferry.batch_queue set status = 'INIT'
      where status = 'ERROR' and error like '%NoSuchKey%';

    A trigger resets attempts, run_after, error and failures.

    An entry whose production key is taken by a different object is a conflict, and would be one again. Say what to do
    with that object:

    \b
      rowferry requeue --error-like 'different object' --on-conflict older
      rowferry requeue --error-like 'different object' --on-conflict overwrite
    """
    from rowferry.db.connection import call, connect, translated_errors
    from rowferry.formatting import count_batches

    if sum((everything, batch_id is not None, error_like is not None)) != 1:
        raise click.UsageError("say which batches: exactly one of --all, --batch ID and --error-like PATTERN")
    if batch_id is not None and (migration is not None or queue is not None or all_migrations):
        raise click.UsageError("a batch belongs to one queue of one migration: give --batch alone")
    with connect("requeue", autocommit=True) as connection, translated_errors():
        any_migration = all_migrations or batch_id is not None
        chosen = choose_one_or_all(connection, migration, plan_path, all_migrations=any_migration)
        choose_queue(connection, queue, chosen)
        (row,) = call(connection, "requeue", batch_id, error_like, chosen, queue, on_conflict)
    none = "No batch in ERROR matches: see `rowferry errors`."
    click.echo(f"Requeued {count_batches(row['requeue'])}." if row["requeue"] else none)
