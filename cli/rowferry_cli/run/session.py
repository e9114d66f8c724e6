"""The session of `rowferry migrate`, from the first question to the last count."""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from rowferry.db.connection import Connection, call, connect, name_database, translated_errors
from rowferry.db.schema import check_version, initialise
from rowferry.errors import RowferryError, UsageError
from rowferry.formatting import count, count_batches, count_entries, show_text
from rowferry.logs import LogFile, log_to_file
from rowferry.plan import OnConflict, Plan
from rowferry.reports.pause import find_pause, word_way_on
from rowferry.reports.progress import Pace, read_counts
from rowferry.reports.status import print_data_status, read_data_status
from rowferry.s3.listing import UncountedObjects
from rowferry_cli.run.local_workers import LocalWorkers, of_migration
from rowferry_cli.run.passes import Run
from rowferry_cli.run.screen import Screen
from rowferry_cli.run.spinner import show_spinner
from rowferry_cli.setup.check import refuse_problems, show_findings
from rowferry_enqueue.check import check_plan
from rowferry_enqueue.enqueue import Request, find_migration, preview
from rowferry_enqueue.skipped import find_skipped

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The options of the command."""

    batch_size: int
    processes: int
    parallel: int
    limit: int | None
    on_conflict: OnConflict
    allow_empty: bool
    requeue: bool
    count_objects: bool
    verbose: bool
    dry_run: bool
    status_only: bool
    log_file: Path | None
    yes: bool

    @property
    def request(self) -> Request:
        """Return how its passes cut."""
        return Request(self.batch_size, self.limit, self.on_conflict)


def run_session(plan: Plan, choices: Choices) -> int:
    """Run the command and return its exit status: 0, or 1 when entries could not be migrated."""
    screen = Screen(yes=choices.yes or choices.status_only or choices.dry_run)
    _introduce(plan, screen)
    screen.ask("Continue?")
    screen.say("Connecting …")
    with connect("migrate", autocommit=True) as connection:
        if choices.status_only:
            _show_status(connection, plan, choices, screen)
            return 0
        _check(connection, plan, choices, screen)
        _show_status(connection, plan, choices, screen)
        if choices.dry_run:
            _show_preview(connection, plan, choices, screen)
            return 0
        log_path = choices.log_file or _name_log(plan)
        screen.say("Legacy objects are never written and never deleted.")
        screen.say(f"Log: {log_path}")
        screen.ask("Migrate now?")
        with log_to_file(log_path) as log:
            return _migrate(connection, plan, choices, screen, log)


def _introduce(plan: Plan, screen: Screen) -> None:
    tables = ", ".join(entries.label for entries in plan.entries)
    screen.say(f"Migration {plan.name}: {tables} in {name_database()}")
    screen.say(f"  from  {_place(plan.legacy.bucket, plan.legacy.endpoint_url)} (legacy: only read)")
    screen.say(f"  to    {_place(plan.production.bucket, plan.production.endpoint_url)} (production: written)")


def _place(bucket: str, endpoint_url: str | None) -> str:
    return f"s3://{bucket} at {endpoint_url or 'AWS'}"


def _check(connection: Connection, plan: Plan, choices: Choices, screen: Screen) -> None:
    """Check the plan and show what was found. Raises UsageError when something stands in the way."""
    screen.say("Checking permissions, keys and buckets …")
    with show_spinner() as tell:
        findings = check_plan(
            connection,
            plan,
            on_conflict=choices.on_conflict,
            allow_empty=choices.allow_empty or find_migration(connection, plan.name) is not None,
            may_write=not choices.dry_run,
            on_progress=tell,
        )
    show_findings(findings, screen.console)
    refuse_problems(findings)


def _show_status(connection: Connection, plan: Plan, choices: Choices, screen: Screen) -> None:
    with show_spinner() as tell:
        try:
            status = read_data_status(connection, plan, count_objects=choices.count_objects, on_progress=tell)
        except UncountedObjects as error:  # nothing of a migration needs the number
            screen.say(f"Objects are not counted: {error}")
            status = read_data_status(connection, plan, count_objects=False, on_progress=tell)
    print_data_status(status, screen.console)


def _show_preview(connection: Connection, plan: Plan, choices: Choices, screen: Screen) -> None:
    for table in preview(connection, plan, choices.request):
        screen.say(f"{table.label}: {count_entries(table.entries)} in {count_batches(table.batches)} would be enqueued")
    _tell_skipped(connection, plan, screen)
    screen.say("Dry run: nothing was written.")


def _tell_skipped(connection: Connection, plan: Plan, screen: Screen) -> None:
    if left := find_skipped(connection, plan):
        screen.say(left.describe(plan.name))


def _make_ready(connection: Connection, screen: Screen) -> None:
    """Initialise a database that is not of this version; a role that may not do so is not asked to otherwise."""
    try:
        check_version(connection)
    except UsageError:
        done = initialise(connection)
        screen.say(f"Initialised the schema rowferry: {', '.join(done.migrations) or 'functions and views'}")


def _refuse_paused(connection: Connection, plan: Plan) -> None:
    """Raise UsageError when the migration is paused: its workers would wait without a word."""
    if paused := find_pause(connection, plan.name):
        raise UsageError(f"Migration {plan.name} is {paused}: run `rowferry resume` first.")


def _migrate(connection: Connection, plan: Plan, choices: Choices, screen: Screen, log: LogFile) -> int:
    _make_ready(connection, screen)
    _refuse_paused(connection, plan)
    if choices.requeue:
        with translated_errors():
            (row,) = call(connection, "requeue", None, None, plan.name)
        screen.say(f"Requeued {count_batches(row['requeue'])}.")
    _tell_skipped(connection, plan, screen)
    before = read_counts(connection, plan.name)
    with _interruptible(screen):
        pace = _run(connection, plan, choices, screen, log)
    _show_status(connection, plan, choices, screen)
    screen.show_account(pace.counts)
    screen.say(f"Log: {log.path}")
    after = read_counts(connection, plan.name)
    if after.batches_error:
        old = " (some from before)" if before.batches_error else ""
        screen.say(
            f"{count_batches(after.batches_error)} in ERROR{old}: see `rowferry errors`, then `rowferry requeue`."
        )
    paused = find_pause(connection, plan.name)
    if paused:
        screen.say(word_way_on(plan.name, paused))
    return 1 if after.batches_error or paused else 0


def _run(connection: Connection, plan: Plan, choices: Choices, screen: Screen, log: LogFile) -> Pace:
    """Run the passes under the live bar; the bar goes away however they end."""
    arguments = [
        *of_migration(plan.name),
        "--parallel",
        str(choices.parallel),
        *(["--verbose"] if choices.verbose else []),
    ]

    def show_line(line: str) -> None:
        if choices.verbose:
            screen.console.print(show_text(line), markup=False, soft_wrap=True)

    def tell_pass(number: int, entries: int, batches: int) -> None:
        screen.say(f"Pass {number}: {count_entries(entries)} in {count(batches, 'new batch', 'new batches')}")

    run = Run(
        connection,
        plan,
        choices.request,
        lambda: LocalWorkers(choices.processes, arguments, log, show_line),
        tell_pass,
        screen.show_progress,
    )
    with screen.live_progress():
        pace = run.passes(read_counts(connection, plan.name))
    screen.say(str(pace))
    return pace


@contextmanager
def _interruptible(screen: Screen) -> Generator[None]:
    """Word an interruption, and the end of all workers."""
    try:
        yield
    except KeyboardInterrupt:
        screen.say("Stopped: batches in hand were finished or given back. Run the same command again to go on.")
        raise click.exceptions.Abort from None
    except RowferryError as error:
        _log.error("%s", error)
        raise


def _name_log(plan: Plan) -> Path:
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return Path(f"rowferry-{plan.name}-{moment}-{os.getpid()}.log")
