"""`rowferry migrate`, from the first question to the last count."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from rowferry.db.connection import Connection, connect, name_database
from rowferry.db.schema import check_version, initialise
from rowferry.errors import MigrationFault, UsageError
from rowferry.formatting import count
from rowferry.plan import OnConflict, Plan
from rowferry.reports.coverage import Coverage, record_coverage
from rowferry.reports.facts import KEPT_OTHERS, read_facts, record_facts
from rowferry_cli.log_file import LogFile, log_to_file
from rowferry_cli.messages import (
    DRY_RUN,
    describe_application,
    describe_chosen,
    describe_direction,
    describe_errors,
    describe_pause,
)
from rowferry_cli.migrate.last_listing import LastListing
from rowferry_cli.migrate.one_pass import report_paused_queues, run_one_pass
from rowferry_cli.migrate.passes import Run, name_log
from rowferry_cli.migrate.vain import PassInVain
from rowferry_cli.options import WorkerOptions
from rowferry_cli.reporter import Reporter
from rowferry_cli.setup.check import judge, print_findings
from rowferry_cli.status.counts import UncountedObjects
from rowferry_cli.status.data import read_data_status
from rowferry_cli.status.pause import find_pause
from rowferry_cli.status.tables import print_data_status
from rowferry_enqueue.check import check_plan
from rowferry_enqueue.enqueue import EnqueueRequest, find_migration, preview
from rowferry_enqueue.waiting_batches import choose_on_conflict, describe_skipped
from rowferry_queues.migrate.spec import MIGRATE, MigrateChoices

COUNT_WITHIN = timedelta(seconds=5)
"""How long objects are counted before a migration: a person waits for the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateOptions(WorkerOptions):
    """The options of the command."""

    batch_size: int
    limit: int | None
    overwrite: bool
    on_conflict: OnConflict | None
    allow_empty: bool
    no_objects: bool
    verbose: bool
    dry_run: bool
    status_only: bool
    yes: bool

    @property
    def choices(self) -> MigrateChoices:
        """Return what the passes are asked for."""
        return MigrateChoices(on_conflict="overwrite" if self.overwrite else self.on_conflict)

    @property
    def request(self) -> EnqueueRequest:
        """Return what each pass enqueues."""
        return EnqueueRequest(MIGRATE, self.batch_size, self.limit, self.choices)


def run_migrate(plan: Plan, options: MigrateOptions) -> int:
    """Run the command and return its exit status: 0, or 1 when entries could not be migrated."""
    plan.require_both_sides()
    reporter = Reporter(yes=options.yes)
    _introduce(plan, reporter)
    with connect("migrate", autocommit=True) as connection:
        if options.status_only:
            _show_status(connection, plan, reporter, count_objects=not options.no_objects)
            return 0
        if not options.dry_run and is_ready(connection):
            refuse_pause(connection, plan)
        facts: dict[str, bool | str] = {}
        coverage, status = _check(connection, plan, options, reporter, facts)
        _show_status(connection, plan, reporter, count_objects=not options.no_objects)
        if options.dry_run:
            _show_preview(connection, plan, options, reporter)
            return status
        log_path = options.log_file or name_log(plan, options.request)
        reporter.print(describe_application(plan))
        reporter.print("Legacy objects are only read. Nothing is deleted.")
        if options.processes != 0:
            reporter.print(f"Log: {log_path}")
        reporter.confirm("Migrate now?")
        prepare_database(connection, plan, reporter)
        record_facts(connection, plan.name, facts)
        for found in coverage:
            record_coverage(connection, plan.name, found)
        _prepare_batches(connection, plan, options, reporter)
        if options.processes == 0:
            return run_one_pass(connection, plan, options.request, options, reporter, unsettled="")
        with log_to_file(log_path) as log:
            return _migrate(connection, plan, options, reporter, log)


def _introduce(plan: Plan, reporter: Reporter) -> None:
    tables = ", ".join(plan.labels)
    reporter.print(f"Migration {plan.name}: {tables} in {name_database()}")
    for line in describe_direction(plan):
        reporter.print(line)


def _check(
    connection: Connection, plan: Plan, options: MigrateOptions, reporter: Reporter, facts: dict[str, bool | str]
) -> tuple[Sequence[Coverage], int]:
    """Check the plan, print each finding as it comes, and return what the plan covers, and the exit status of `check`.

    `facts`: as of check_plan. Raises UsageError when there is a problem.
    """
    coverage: list[Coverage] = []
    reporter.print("Checking permissions, keys and buckets …")
    with reporter.show_activity("checking") as on_progress:
        checks = check_plan(
            connection,
            plan,
            on_conflict=options.choices.on_conflict,
            allow_empty=options.allow_empty or find_migration(connection, plan.name) is not None,
            may_write=not options.dry_run,
            on_progress=on_progress,
            coverage=coverage,
            facts=facts,
        )
        findings = print_findings(checks, reporter.console)
    return coverage, judge(findings)


def _show_status(connection: Connection, plan: Plan, reporter: Reporter, *, count_objects: bool) -> None:
    """Print the status. Objects are counted before the work alone: after it, the outcomes say what has been copied."""
    with reporter.show_activity("counting") as on_progress:
        read = partial(read_data_status, connection, plan, on_progress=on_progress)
        try:
            status = read(count_objects=count_objects, within=COUNT_WITHIN)
        except UncountedObjects as error:  # a migration does not need the number
            reporter.print(f"Objects are not counted: {error}")
            status = read(count_objects=False)
    print_data_status(status, reporter.console)


def _show_preview(connection: Connection, plan: Plan, options: MigrateOptions, reporter: Reporter) -> None:
    for table in preview(connection, plan, options.request):
        reporter.print(f"{table} would be enqueued")
    _show_skipped(connection, plan, reporter)
    reporter.print(DRY_RUN)


def _show_skipped(connection: Connection, plan: Plan, reporter: Reporter) -> None:
    if words := describe_skipped(connection, plan, MIGRATE):
        reporter.print(words)


def _prepare_batches(connection: Connection, plan: Plan, options: MigrateOptions, reporter: Reporter) -> None:
    """Do with batches of earlier passes what the options say."""
    chosen = choose_on_conflict(connection, plan, options.choices)
    if words := describe_chosen(options.choices.on_conflict, chosen):
        reporter.print(words)
    _show_skipped(connection, plan, reporter)


def _migrate(connection: Connection, plan: Plan, options: MigrateOptions, reporter: Reporter, log: LogFile) -> int:
    run = Run(connection, plan, options.request, options, reporter, log, options.verbose)
    last = LastListing.begin(plan)
    try:
        chain = run.all_passes()
    except PassInVain as error:
        reporter.print(str(error))
        return 1
    reporter.report_end(chain)
    paused = find_pause(connection, plan.name)
    with suppress(*[MigrationFault] if paused else []):  # the pause says what is wrong with the table
        _show_status(connection, plan, reporter, count_objects=False)
    reporter.print("This run")
    reporter.report_outcomes(chain)
    if read_facts(connection, plan.name).get(KEPT_OTHERS):
        reporter.print(f"Some {KEPT_OTHERS}: `rowferry verify` names them, `rowferry verify --repair` copies them.")
    reporter.print(f"Log: {log.path}")
    errors = sum(counts.batches_error for counts in run.chain.read().of.values())
    if errors:
        reporter.print(describe_errors(errors))
    if paused:
        reporter.print(describe_pause(plan.name, paused))
    left = report_paused_queues(run)
    differ = 0 if paused else last.repair(run, chain)
    if differ:
        reporter.print(f"{count(differ, 'object', 'objects')} not repaired (see `rowferry errors`)")
    return 1 if errors or paused or left or differ else 0


def prepare_database(connection: Connection, plan: Plan, reporter: Reporter) -> None:
    """Initialise a database of another version. Raises UsageError when the migration is paused.

    A database of this version is left alone, since the role may lack the right to initialise.
    """
    if not is_ready(connection):
        done = initialise(connection)
        reporter.print(f"Initialised the schema rowferry: {', '.join(done.migrations) or 'functions and views'}")
    refuse_pause(connection, plan)


def is_ready(connection: Connection) -> bool:
    """Return whether the database has the schema of this version."""
    try:
        check_version(connection)
    except UsageError:
        return False
    return True


def refuse_pause(connection: Connection, plan: Plan) -> None:
    """Raise UsageError when the migration is paused: its workers would wait silently."""
    if paused := find_pause(connection, plan.name):
        raise UsageError(f"Migration {plan.name} is {paused}: run `rowferry resume` first.")
