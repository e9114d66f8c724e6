"""`rowferry queues`: which queues there are, here and in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rowferry.errors import UsageError
from rowferry.formatting import count, count_batches, format_json, show_text
from rowferry_cli.command import Command
from rowferry_cli.options import json_option

if TYPE_CHECKING:
    from psycopg.rows import DictRow


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
    from rowferry_cli.status.chain import read_chain
    from rowferry_cli.status.unusable import find_unusable

    known = _list_known()
    if not as_json:
        _print_known(known)
    with connect("queues", autocommit=True) as connection:
        check_version(connection)
        queues = read_chain(connection, None)
        unusable = find_unusable(connection, None)
    usable = {queue["name"] for queue in known if queue["fault"] is None}
    queues = [queue | {"is_known": queue["queue"] in usable} for queue in queues]
    if as_json:
        click.echo(format_json({"known": known, "queues": queues}, indent=2))
    else:
        _print_queues(queues)
        for skipped in unusable:
            click.echo(show_text(skipped))


def _list_known() -> list[dict[str, str | None]]:
    """Return the queues that are installed here, with the distribution of each, and why it cannot be used, if so."""
    from rowferry.queues import find_queue, list_queues, name_packages

    found: list[dict[str, str | None]] = []
    for name in list_queues():
        known = {"name": name, "package": name_packages(name), "summary": "", "fault": None}
        try:
            known["summary"] = find_queue(name).summary
        except UsageError as error:
            known["fault"] = str(error)
        found.append(known)
    return found


def _print_known(known: Sequence[dict[str, str | None]]) -> None:
    click.secho("Installed here", bold=True)
    width = max(len(queue["name"] or "") for queue in known)
    for queue in known:
        click.echo(f"  {queue['name']:<{width}}  {show_text(queue['fault'] or queue['summary'])} ({queue['package']})")


def _print_queues(queues: Sequence[DictRow]) -> None:
    from rich.console import Console
    from rich.table import Table

    from rowferry_cli.status.state import show_state

    click.secho("\nIn this database", bold=True)
    if not queues:
        click.echo("  No queue has batches yet.")
        return
    table = Table(box=None, pad_edge=True, padding=(0, 1))
    for heading in ("migration", "queue"):
        table.add_column(heading, overflow="fold")
    table.add_column("state", no_wrap=True)
    for heading in ("batches\nwaiting", "batches\nclaimed", "workers", "priority", "weight"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("next", overflow="fold")
    for queue in queues:
        most = "" if queue["max_claimed"] is None else f" / {queue['max_claimed']:,}"
        numbers = (f"{queue['batches_left']:,}", f"{queue['claimed']:,}{most}", f"{queue['workers']:,}")
        shares = (f"{queue['priority']}", f"{queue['weight']:g}", ", ".join(queue["next"]))
        table.add_row(queue["migration"], queue["queue"], show_state(queue["state"]), *numbers, *shares)
    Console(highlight=False, soft_wrap=True).print(table)
    for words in filter(None, map(_find_words, queues)):
        click.echo(words)


def _find_words(queue: DictRow) -> str | None:
    """Return what a person should know of a queue, in one sentence; None: nothing."""
    name, waiting = f"{queue['queue']} of {queue['migration']}", count_batches(queue["batches_left"])
    wait = count(queue["batches_left"], "batch waits", "batches wait")
    if queue["paused_at"] is not None:
        with_migration = " with its migration" if queue["is_paused_whole"] else ""
        since = f"{name} is paused{with_migration} since {queue['paused_at']:%Y-%m-%d %H:%M:%S %Z}"
        reason = f": {show_text(queue['pause_reason'].rstrip('.'))}" if queue["pause_reason"] else ""
        return f"{since}, with {waiting} waiting{reason}."
    if not queue["is_known"]:
        served = f"{count(queue['workers'], 'live worker serves', 'live workers serve')} it, {wait}"
        return f"{name} is not known here ({served}): install its package where workers shall serve it."
    if queue["state"] == "no_workers" and not queue["workers"]:
        return f"{name}: {wait}, and no live worker serves it: start `rowferry worker` on any host."
    return None
