"""`rowferry cutover`: short passes up to the moment of the switch, then a last pass and a verify."""

from dataclasses import dataclass

from rowferry.db.connection import connect, name_database
from rowferry.errors import UsageError
from rowferry.plan import OnConflict, Plan
from rowferry_cli.clocks import measure_clocks
from rowferry_cli.cutover.steps import Cutover
from rowferry_cli.cutover.switch import confirm_abandoned, note_switched_back
from rowferry_cli.log_file import log_to_file
from rowferry_cli.messages import describe_direction, describe_switch
from rowferry_cli.migrate.passes import Run, name_log
from rowferry_cli.migrate.run import prepare_database
from rowferry_cli.options import WorkerOptions
from rowferry_cli.reporter import Reporter
from rowferry_enqueue.enqueue import EnqueueRequest
from rowferry_queues.migrate.spec import MIGRATE, MigrateChoices


@dataclass(frozen=True, slots=True, kw_only=True)
class CutoverOptions(WorkerOptions):
    """The options of the command."""

    batch_size: int
    on_conflict: OnConflict | None
    finish: bool
    switched_back: bool
    as_json: bool
    yes: bool


def run_cutover(plan: Plan, options: CutoverOptions) -> int:
    """Run the command and return its exit status: 0, or 1 when entries are left or a person must act."""
    plan.require_both_sides()
    reporter = Reporter(yes=options.yes, to_stderr=options.as_json)
    waits_for_switch = plan.copies_alone
    if not waits_for_switch and (options.finish or options.switched_back):
        raise UsageError(
            f"The rows of migration {plan.name} say where each object is, so there is no switch to confirm: run "
            "`rowferry cutover` without --finish and --switched-back."
        )
    if options.finish and options.on_conflict == "overwrite":
        raise UsageError(
            "After the switch, --on-conflict overwrite would replace what the application has written to "
            "production: run `rowferry cutover --finish` without it, then see what `rowferry errors` names."
        )
    reporter.print(f"Cutover of migration {plan.name} in {name_database()}")
    for line in describe_direction(plan):
        reporter.print(line)
    if plan.copies_alone and plan.rows_move:
        reporter.print(describe_switch(plan))
    if not options.finish:
        reporter.confirm("Begin?")
    with connect("cutover", autocommit=True) as connection:
        prepare_database(connection, plan, reporter)
        if options.switched_back:
            return note_switched_back(connection, plan, reporter)
        skew = None
        if waits_for_switch and not options.finish:  # the last pass measures for itself
            skew = measure_clocks(plan, reporter)
            confirm_abandoned(connection, plan, reporter)
        choices = MigrateChoices(on_conflict=options.on_conflict, skew=skew)
        request = EnqueueRequest(MIGRATE, options.batch_size, choices=choices)
        log_path = options.log_file or name_log(plan, request)
        reporter.print(f"Log: {log_path}")
        with log_to_file(log_path) as log:
            run = Run(connection, plan, request, options, reporter, log)
            return Cutover(run, waits_for_switch, options.as_json).run_to_end(finish=options.finish)
