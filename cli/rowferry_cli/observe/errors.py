"""`rowferry errors`: what failed, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry.formatting import count_batches, count_entries, format_json, shorten, show_text
from rowferry_cli.command import Command, Group
from rowferry_cli.messages import NO_REASON, write_requeue
from rowferry_cli.migration import (
    all_migrations_option,
    choose_one_or_all,
    choose_queue,
    list_migrations,
    list_queues,
    migration_option,
    queue_option,
)
from rowferry_cli.options import json_option

if TYPE_CHECKING:
    from rowferry.db.connection import Connection, DictRow
    from rowferry.plan import OnConflict


RETRY: Mapping[str, OnConflict | None] = {"to retry": None}
CONFLICT: Mapping[str, OnConflict | None] = {"where older": "older", "to replace": "overwrite"}
"""What ends a conflict with the object that is in production, and the --on-conflict that does it. `keep` is left to the
pages: where the legacy object is newer, it shows old bytes."""
NOT_ENCRYPTED: Mapping[str, OnConflict | None] = {"to keep": "keep", "to replace": "overwrite"}
"""The same for an object with the right bytes that is not encrypted as the plan says."""
GROUPS = (Group("Which failures", "Filters.", ("--queue", "--limit")),)


@click.command("errors", cls=Command, groups=GROUPS)
@migration_option
@all_migrations_option
@queue_option
@click.option("--entries", "by_entry", is_flag=True, help="List entries instead of reasons.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="Show at most this many.")
@json_option
def command(
    migration: str | None,
    plan_path: Path,
    all_migrations: bool,
    queue: str | None,
    by_entry: bool,
    limit: int,
    as_json: bool,
) -> None:
    """List why batches are in ERROR, grouped by queue and reason, and how to put them back into the queue.

    Batches that will be retried automatically are not shown.
    """
    from rowferry.db.connection import connect, translated_errors
    from rowferry.db.statements import statement

    with connect("errors", autocommit=True) as connection, translated_errors():
        chosen = choose_one_or_all(connection, migration, plan_path, all_migrations=all_migrations)
        choose_queue(connection, queue, chosen)
        query = statement("failed_entries" if by_entry else "error_groups")
        rows = connection.execute(query, {"migration": chosen, "queue": queue, "limit": limit}).fetchall()
        troubles = _list_troubles(connection, chosen)
        has_several = len(list_migrations(connection)) > 1
        has_queues = len(list_queues(connection, chosen)) > 1
    if as_json:
        click.echo(format_json(rows, indent=2))
    elif not rows:
        click.echo("No entry keeps a batch in ERROR." if by_entry else "No batch is in ERROR.")
    elif by_entry:
        _print_entries(rows)
    else:
        which = "" if not has_several else f" --migration {chosen}" if chosen is not None else " --all-migrations"
        which += "" if queue is None else f" --queue {queue}"
        _print_groups(rows, which, has_several=has_several, has_queues=has_queues)
    if not as_json:
        for trouble in troubles:
            click.echo(show_text(trouble))


def _list_troubles(connection: Connection, migration: str | None) -> list[str]:
    """Return why batches that are not in ERROR do not go on either: a pause, and workers that skip the migration."""
    from rowferry_cli.status.pause import find_pause
    from rowferry_cli.status.unusable import find_unusable

    paused = None if migration is None else find_pause(connection, migration)
    words = (
        [f"Migration {migration} is {paused}. To continue: rowferry resume --migration {migration}"] if paused else []
    )
    return [*words, *map(str, find_unusable(connection, migration))]


def _print_groups(rows: list[DictRow], which: str, *, has_several: bool, has_queues: bool) -> None:
    """Print each reason with an example, what may solve it, and the command that requeues its batches."""
    from rowferry.s3.cures import find_cure, read_refusal

    for row in rows:
        of_queue = f", queue {row['queue_name']}" if has_queues else ""
        counts = f"{count_entries(row['entries'])} in {count_batches(row['batches'])}"
        click.secho(f"{row['outcome']}: {show_text(row['reason'] or NO_REASON)}", bold=True, nl=False)
        click.echo(
            f"  ({counts} of {row['migration']}{of_queue}, last at {row['last_failed_at']:%Y-%m-%d %H:%M:%S %Z})"
        )
        if row["example_key"] is not None:
            click.echo(f"    for example  {show_text(shorten(row['example_key']))}: {show_text(row['example_error'])}")
        if cure := find_cure(read_refusal(row["example_error"] or row["reason"] or "")):
            click.echo(f"    {'to solve':<12} {cure}")
        migration = row["migration"] if has_several else None
        queue = row["queue_name"] if has_queues else None
        if row["repair"] is not None:
            click.echo(f"    {'to repair':<12} {show_text(row['repair'])}")
        for what, on_conflict in _list_choices(row).items():
            command = write_requeue(row["pattern"], migration=migration, queue=queue, on_conflict=on_conflict)
            click.echo(f"    {what:<12} {command}")
        click.echo()
    _print_rest(rows)
    click.echo(f"Retry all: rowferry requeue --all{which}     List entries: rowferry errors --entries{which}")


def _list_choices(row: DictRow) -> Mapping[str, OnConflict | None]:
    if not row["takes_on_conflict"]:
        return RETRY
    return CONFLICT if row["outcome"] == "conflict" else NOT_ENCRYPTED


def _print_entries(rows: list[DictRow]) -> None:
    for row in rows:
        click.secho(show_text(f"{row['entries']} {row['entry_id']}"), bold=True, nl=False)
        click.echo(f"  {show_text(shorten(row['key']))}" if row["key"] != row["entry_id"] else "")
        where = f"batch {row['batch_id']}, attempt {row['attempt']}"
        click.echo(f"    {row['outcome']}: {show_text(row['error'])}  ({where})")
    _print_rest(rows)


def _print_rest(rows: list[DictRow]) -> None:
    total = rows[0]["total"]
    if total > len(rows):
        click.echo(f"… and {total - len(rows):,} more: --limit {total} shows all.")
