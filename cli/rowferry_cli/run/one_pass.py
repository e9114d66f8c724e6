"""What `rowferry verify` and `revert` share: one pass through a queue of their own, with this host's workers."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from rowferry.db.connection import Connection
from rowferry.errors import RowferryError
from rowferry.formatting import count_batches, count_entries
from rowferry.logs import LogFile, log_to_file
from rowferry.plan import Plan
from rowferry.reports.pause import find_pause, word_way_on
from rowferry.reports.progress import Counts
from rowferry_cli.run.local_workers import LocalWorkers, of_migration
from rowferry_cli.run.passes import Run
from rowferry_cli.run.screen import Screen
from rowferry_enqueue.enqueue import Request, enqueue


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """The workers of this host."""

    processes: int
    """0: none; the batches wait for workers elsewhere."""
    parallel: int
    log_file: Path | None


def run_one_pass(
    connection: Connection, plan: Plan, request: Request, crew: Crew, screen: Screen, *, unsettled: str
) -> int:
    """Enqueue, work until the queue is empty, show the account, and return the exit status.

    That is 1 where entries are left over, of which the person is told that they are `unsettled`, in words; else 0.
    """
    if crew.processes == 0:
        tables = enqueue(connection, plan, request)
        entries, batches = sum(table.entries for table in tables), sum(table.batches for table in tables)
        screen.say(f"Enqueued {count_entries(entries)} in {count_batches(batches)}.")
        screen.say(f"Next: `rowferry worker --queue {request.queue}`, anywhere.")
        return 0
    log_path = crew.log_file or _name_log(plan, request)
    with log_to_file(log_path) as log:
        counts = _work(connection, plan, request, crew, screen, log)
    screen.show_account(counts)
    screen.say(f"Log: {log_path}")
    if paused := find_pause(connection, plan.name):
        screen.say(word_way_on(plan.name, paused))
        return 1
    if not counts.unsettled:
        return 0
    screen.say(f"{counts.unsettled:,} {unsettled}: see `rowferry errors`.")
    return 1


def _work(connection: Connection, plan: Plan, request: Request, crew: Crew, screen: Screen, log: LogFile) -> Counts:
    arguments = [*of_migration(plan.name), "--parallel", str(crew.parallel), "--queue", request.queue]

    def tell_pass(_number: int, entries: int, batches: int) -> None:
        screen.say(f"{count_entries(entries)} in {count_batches(batches)} to {request.queue}")

    run = Run(
        connection,
        plan,
        request,
        lambda: LocalWorkers(crew.processes, arguments, log, lambda _line: None),
        tell_pass,
        screen.show_progress,
    )
    try:
        with screen.live_progress():
            pace = run.once()
    except KeyboardInterrupt:
        screen.say("Stopped: batches in hand were finished or given back. Run the same command again to go on.")
        raise click.exceptions.Abort from None
    except RowferryError as error:
        screen.say(f"Log: {log.path}")
        raise error from None
    screen.say(str(pace))
    return pace.counts


def _name_log(plan: Plan, request: Request) -> Path:
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return Path(f"rowferry-{plan.name}-{request.queue}-{moment}-{os.getpid()}.log")
