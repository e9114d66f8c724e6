"""`rowferry requeue`: batches in ERROR get another chance."""

import click


@click.command("requeue")
@click.option("--all", "everything", is_flag=True, help="All batches in ERROR, of all migrations or of the one named.")
@click.option("--batch", "batch_id", type=click.IntRange(1), metavar="ID", help="This batch.")
@click.option(
    "--error-like",
    metavar="PATTERN",
    help="Batches whose error, or an entry's error or reason, is LIKE this pattern: % any text, _ any character.",
)
@click.option("--migration", metavar="NAME", help="With --all or --error-like: only batches of this migration.")
def command(everything: bool, batch_id: int | None, error_like: str | None, migration: str | None) -> None:
    """Put batches in ERROR back in the queue, due now, with all their attempts before them.

    What a batch has migrated stays migrated. The same in plain SQL, wherever you like:

    \b
      update rowferry.batch_queue set status = 'INIT'
      where status = 'ERROR' and error like '%NoSuchKey%';

    A trigger resets the rest: attempts, run_after, error, failures.
    """
    from rowferry.db.connection import call, connect, fetch_one, translated_errors
    from rowferry.db.statements import statement
    from rowferry.formatting import count_batches, count_entries
    from rowferry_cli.choose_migration import check_migration

    if sum((everything, batch_id is not None, error_like is not None)) != 1:
        raise click.UsageError("say which batches: exactly one of --all, --batch ID and --error-like PATTERN")
    if migration is not None and batch_id is not None:
        raise click.UsageError("a batch belongs to one migration: leave out --migration or --batch")
    with connect("requeue", autocommit=True) as connection, translated_errors(), connection.transaction():
        if migration is not None:
            check_migration(connection, migration)
        chosen = {"migration": migration}
        before = fetch_one(connection, statement("count_errors"), chosen)
        (row,) = call(connection, "requeue", batch_id, error_like, migration)
        after = fetch_one(connection, statement("count_errors"), chosen)
    batches = row["requeue"]
    if not batches:
        click.echo("No batch in ERROR matches.")
        return
    entries, failed = (before[name] - after[name] for name in ("entries", "failed"))
    click.echo(
        f"Back in the queue: {count_batches(batches)} of {count_entries(entries)}, {failed:,} of which had failed."
    )
    if after["batches"]:
        click.echo(f"Still in ERROR: {count_batches(after['batches'])}.")
