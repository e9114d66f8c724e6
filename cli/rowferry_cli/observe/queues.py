"""`rowferry queues`: which queues there are, here and in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rowferry.formatting import count, count_batches, format_json, show_text
from rowferry_cli.command import Command
from rowferry_cli.options import json_option

if TYPE_CHECKING:
    from rowferry.reports.queues import KnownQueue, Line


@click.command("queues", cls=Command)
@json_option
def command(as_json: bool) -> None:
    """List the queues: those that are installed here, and those of all migrations in the database.

    A queue is a kind of work on batches. Some come with rowferry, others with packages of your own, which are installed
    with pip on each host whose workers shall serve them. A worker serves all queues that it knows, unless --queue says
    otherwise; batches of other queues wait.

    \b
    Of each queue in the database:
      state            as `rowferry status` says it; idle: it waits for the queues before it
      batches waiting  that no worker has claimed
      batches claimed  that workers have claimed, and the most that they may
      workers          live workers that serve it, on all hosts
      priority         higher ones are claimed first
      weight           its share of the claims among queues of one priority
      next             the queues that get what it has settled

    The last three, the limit and the pause are columns of rowferry.queue: the plan sets them, an UPDATE changes them.
    """
    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry.reports.queues import as_document, list_known, read_lines
    from rowferry.reports.unusable import find_unusable

    known = list_known()
    if not as_json:
        _print_known(known)
    with connect("queues", autocommit=True) as connection:
        check_version(connection)
        lines = read_lines(connection)
        unusable = find_unusable(connection, None)
    if as_json:
        click.echo(format_json(as_document(known, lines), indent=2))
    else:
        _print_lines(lines)
        for skipped in unusable:
            click.echo(show_text(skipped))


def _print_known(known: Sequence[KnownQueue]) -> None:
    click.secho("Installed here", bold=True)
    width = max(len(queue.name) for queue in known)
    for queue in known:
        does = queue.summary if queue.fault is None else queue.fault
        click.echo(f"  {queue.name:<{width}}  {show_text(does)} ({queue.package})")


def _print_lines(lines: Sequence[Line]) -> None:
    from rich.console import Console
    from rich.table import Table

    from rowferry.reports.state import show_state

    click.secho("\nIn this database", bold=True)
    if not lines:
        click.echo("  No queue has batches yet.")
        return
    table = Table(box=None, pad_edge=True, padding=(0, 1))
    for heading in ("migration", "queue"):
        table.add_column(heading, overflow="fold")
    table.add_column("state", no_wrap=True)
    for heading in ("batches\nwaiting", "batches\nclaimed", "workers", "priority", "weight"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("next", overflow="fold")
    for line in lines:
        most = "" if line.max_in_hand is None else f" / {line.max_in_hand:,}"
        claimed = f"{line.claimed_batches:,}{most}"
        numbers = (f"{line.waiting_batches:,}", claimed, f"{line.workers:,}", f"{line.priority}", f"{line.weight:g}")
        table.add_row(line.migration, line.queue, show_state(line.state), *numbers, ", ".join(line.next))
    Console(highlight=False, soft_wrap=True).print(table)
    for words in filter(None, map(_find_words, lines)):
        click.echo(words)


def _find_words(line: Line) -> str | None:
    """Return what a person should know of a queue, in one sentence; None: nothing."""
    name, waiting = f"{line.queue} of {line.migration}", count_batches(line.waiting_batches)
    wait = count(line.waiting_batches, "batch waits", "batches wait")
    if line.paused_at is not None:
        with_migration = " with its migration" if line.is_paused_whole else ""
        since = f"{name} is paused{with_migration} since {line.paused_at:%Y-%m-%d %H:%M:%S %Z}"
        reason = f": {show_text(line.pause_reason.rstrip('.'))}" if line.pause_reason else ""
        return f"{since}, with {waiting} waiting{reason}."
    if not line.is_known:
        served = f"{count(line.workers, 'live worker serves', 'live workers serve')} it, {wait}"
        return f"{name} is not known here ({served}): install its package where workers shall serve it."
    if line.state == "no_workers" and not line.workers:
        return f"{name}: {wait}, and no live worker serves it: start `rowferry worker` on any host."
    return None
