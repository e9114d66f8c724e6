"""`rowferry verify`: compare every production object with its legacy object."""

import click

from rowferry_cli.command import Command, Group
from rowferry_cli.options import LOG_FILE, WORKERS, PassOptions, pass_options

RANGE = Group("Range", "Which entries of a table, by their ids.", ("--first", "--last"))


@click.command("verify", cls=Command, groups=(RANGE, WORKERS, LOG_FILE))
@pass_options
@click.option("--deep", is_flag=True, help="Compare the bytes of both objects even if their ETags are equal.")
@click.option("--repair", is_flag=True, help="Copy missing objects again, and those older than their legacy object.")
@click.option(
    "--overwrite", is_flag=True, help="With --repair: also replace production objects that differ and are newer."
)
def command(options: PassOptions, deep: bool, repair: bool, overwrite: bool) -> int:
    """Compare the object of every production entry with its legacy object: it must be readable and equal.

    Sizes are compared first, then ETags, checksums, or the bytes. Rows are not changed.

    With --repair it is the second pass of a migration: objects that the application changed under their legacy keys
    after they were copied are copied again. A production object that is newer than its legacy object may be the
    application's own work, so it is reported and not replaced, unless --overwrite is given.

    Exit status: 0 all equal or repaired, 1 some are different or missing (see `rowferry errors`).
    """
    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry.plan_file import read_plan
    from rowferry_cli.clocks import measure_clocks
    from rowferry_cli.migrate.one_pass import run_one_pass
    from rowferry_cli.reporter import Reporter
    from rowferry_enqueue.enqueue import EnqueueRequest, Within
    from rowferry_queues.verify.spec import VERIFY, VerifyChoices

    if overwrite and not repair:
        raise click.UsageError("--overwrite needs --repair")
    plan = read_plan(options.plan_path)
    plan.require_both_sides()
    reporter = Reporter(yes=options.yes)
    with connect("verify", autocommit=True) as connection:
        check_version(connection)
        if repair:
            which = "that differ" if overwrite else "that are missing or older than their legacy objects"
            reporter.confirm(
                f"Copy the objects of migration {plan.name} {which} to the production bucket {plan.production.bucket} "
                "again?"
            )
        choices = VerifyChoices(
            deep=deep,
            repair="all" if overwrite else "older" if repair else "nothing",
            skew=measure_clocks(plan, reporter) if repair and not overwrite else None,
        )
        within = Within(options.table, options.first, options.last)
        request = EnqueueRequest(VERIFY, options.batch_size, choices=choices, within=within)
        return run_one_pass(connection, plan, request, options, reporter, unsettled="different or missing")
