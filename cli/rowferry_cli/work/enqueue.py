"""`rowferry enqueue`: one pass over what a queue works on, or items of a file."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click
import msgspec

from rowferry.plan import OnConflict
from rowferry_cli.command import Command, Group
from rowferry_cli.messages import DRY_RUN, confirm, describe_enqueued, describe_items
from rowferry_cli.options import (
    batch_size_option,
    complete_queue,
    limit_option,
    on_conflict_option,
    plan_option,
    yes_option,
)

if TYPE_CHECKING:
    from rowferry.db.connection import Connection
    from rowferry.plan import Plan
    from rowferry.queue_spec import QueueChoices, QueueSpec


ENTRIES = Group("Entries", "Select entries and conflict handling.", ("--limit", "--on-conflict"))


@click.command("enqueue", cls=Command, groups=(ENTRIES,))
@plan_option
@click.option(
    "--queue", metavar="NAME", shell_complete=complete_queue, help="The queue to put them in.  [default: migrate]"
)
@click.option(
    "--items",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="Enqueue the items of this file instead, a JSON object with an `id` each line; -: of standard input.",
)
@batch_size_option
@limit_option
@on_conflict_option
@click.option("-d", "--dry-run", is_flag=True, help="Show what would be enqueued; write nothing.")
@yes_option
def command(
    plan_path: Path,
    queue: str | None,
    items: str | None,
    batch_size: int,
    limit: int | None,
    on_conflict: OnConflict | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Put the entries that a queue works on into it, in batches: one pass. Without --queue, legacy entries to migrate.

    Run it as often as you like: entries that are in the queue already are not added again, later ones are found.
    Entries of batches in ERROR stay there until `rowferry requeue`; where rows stay, each pass takes them again.

    \b
    Queues that take items can be given what no table and no bucket names:
      rowferry enqueue --queue NAME --items things.jsonl     {"id": "17", ...} each line
      make-things | rowferry enqueue --queue NAME --items - --yes

    Items are committed as they come, 10,000 at a time, and workers begin meanwhile. An item that waits already, by its
    `id`, is not added again but gets the new content, so the same file may be enqueued again after an error, and the
    newest content counts; one that is done is worked on again.
    """
    from rowferry.plan_file import read_plan
    from rowferry.queues import find_queue
    from rowferry_queues.migrate.spec import MIGRATE

    spec = find_queue(queue or MIGRATE.name)
    choices = _choose(spec, on_conflict)
    plan = read_plan(plan_path)
    if items is None:
        _enqueue_entries(plan, spec, batch_size, limit, choices, dry_run=dry_run, yes=yes)
        return
    if limit is not None:
        raise click.UsageError("--limit is for entries, not for --items")
    with _open(items) as lines:
        _enqueue_items(plan, spec, lines, items, batch_size, choices, dry_run=dry_run, yes=yes)


@contextmanager
def _open(path: str) -> Generator[BinaryIO]:
    """Yield a file, or standard input for `-`. Raises UsageError where it cannot be read."""
    from rowferry.errors import UsageError

    try:
        with click.open_file(path, "rb") as found:
            yield cast("BinaryIO", found)
    except OSError as error:
        raise UsageError(
            f"The items of {path} cannot be read ({error.strerror}): name another file with --items."
        ) from error


def _choose(spec: QueueSpec, on_conflict: OnConflict | None) -> QueueChoices:
    """Return what the queue is asked for. Raises click.UsageError where it cannot be asked for that."""
    if on_conflict is None:
        return spec.choices()
    if "on_conflict" not in spec.choices.__struct_fields__:
        raise click.UsageError(f"--on-conflict means nothing to the queue {spec.name}")
    return msgspec.convert({"on_conflict": on_conflict}, type=spec.choices)


def _enqueue_entries(
    plan: Plan,
    spec: QueueSpec,
    batch_size: int,
    limit: int | None,
    choices: QueueChoices,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Show what a pass would add; ask, and add it."""
    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry_enqueue.enqueue import EnqueueRequest, enqueue, preview, store_changed_plan
    from rowferry_enqueue.waiting_batches import describe_skipped

    request = EnqueueRequest(spec, batch_size, limit, choices)
    with connect("enqueue", autocommit=True) as connection:
        check_version(connection)
        planned = preview(connection, plan, request)
        for table in planned:
            click.echo(f"{table}{'' if table.goes_on else ' to enqueue'}")
        if words := describe_skipped(connection, plan, spec):
            click.echo(words)
        if dry_run:
            click.echo(DRY_RUN)
            return
        if not any(table.batches for table in planned):
            if store_changed_plan(connection, plan):
                click.echo(
                    f"The changed plan of migration {plan.name} is stored: workers read it with their next batch."
                )
            click.echo("Nothing to enqueue.")
            _choose_for_waiting(connection, plan, choices)
            return
        if not yes:
            confirm(f"Put them into the queue of migration {plan.name}?")
        _choose_for_waiting(connection, plan, choices)
        done = enqueue(connection, plan, request)
    click.echo(describe_enqueued(sum(table.entries for table in done), sum(table.batches for table in done)))


def _choose_for_waiting(connection: Connection, plan: Plan, choices: QueueChoices) -> None:
    """Let --on-conflict hold for batches that wait already, and say so."""
    from rowferry_cli.messages import describe_chosen
    from rowferry_enqueue.waiting_batches import choose_on_conflict

    if words := describe_chosen(getattr(choices, "on_conflict", None), choose_on_conflict(connection, plan, choices)):
        click.echo(words)


def _enqueue_items(
    plan: Plan,
    spec: QueueSpec,
    lines: BinaryIO,
    path: str,
    batch_size: int,
    choices: QueueChoices,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Add the items of JSON lines; where one of them is wrong, say how many were added before it."""
    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry.errors import RowferryError, UsageError
    from rowferry.formatting import count
    from rowferry_enqueue.items import ItemsEnqueued, enqueue_items, read_items, refuse_items

    refuse_items(plan, spec)
    name = "standard input" if path == "-" else path
    items = read_items(lines, name)
    if dry_run:
        click.echo(f"{count(sum(1 for _ in items), 'item', 'items')} to enqueue")
        click.echo(DRY_RUN)
        return
    if not yes:
        if name == "standard input":
            raise UsageError("Standard input has the items, so it cannot answer a question: add --yes.")
        confirm(f"Put the items of {name} into the queue {spec.name} of migration {plan.name}?")
    done = ItemsEnqueued()
    with connect("enqueue", autocommit=True) as connection:
        check_version(connection)
        try:
            enqueue_items(connection, plan, spec, items, batch_size=batch_size, choices=choices, enqueued=done)
        except RowferryError:
            if done.items or done.replaced:
                replaced = f", replaced the content of {done.replaced:,}" if done.replaced else ""
                click.echo(f"Enqueued {count(done.items, 'item', 'items')}{replaced} before that.")
            raise
    click.echo(describe_items(done))
