"""`rowferry run`: one pass of any queue."""

from __future__ import annotations

import click

from rowferry_cli.command import Command
from rowferry_cli.options import LOG_FILE, WORKERS, PassOptions, complete_queue, pass_options


@click.command("run", cls=Command, groups=(WORKERS, LOG_FILE))
@click.argument("queue", metavar="QUEUE", shell_complete=complete_queue)
@pass_options
def command(options: PassOptions, queue: str) -> int:
    """Run one pass of a queue: enqueue what needs its work, start workers, and wait until all is done.

    The plan's [queue.QUEUE] says what the queue does, with which entries (`of`), and which queues go on with what it
    has settled (`then`). The pass ends when the queue and all that it leads to are empty. With --processes 0 it only
    enqueues: workers elsewhere process the batches.

    \b
    For example:
      rowferry queues                          which queues there are
      rowferry run verify                      a pass over all entries
      rowferry run verify --table avatars      over those of one table
      rowferry run verify --processes 0        leave the work to workers elsewhere

    Items, which a queue may take instead of entries of the plan, are enqueued by `rowferry enqueue --queue QUEUE
    --items FILE`; then this works on them.

    Exit status: 0 all done, 1 some entries are left (see `rowferry errors`), 2 a mistake in plan or settings.
    """
    from rowferry.db.connection import connect
    from rowferry.db.schema import check_version
    from rowferry.plan_file import read_plan
    from rowferry.queues import find_queue
    from rowferry_cli.migrate.one_pass import run_one_pass
    from rowferry_cli.reporter import Reporter
    from rowferry_enqueue.enqueue import EnqueueRequest, Within, preview

    spec, plan = find_queue(queue), read_plan(options.plan_path)
    reporter = Reporter(yes=options.yes)
    request = EnqueueRequest(spec, options.batch_size, within=Within(options.table, options.first, options.last))
    with connect("run", autocommit=True) as connection:
        check_version(connection)
        reporter.print(f"{spec.name}: {spec.summary}")
        for table in preview(connection, plan, request):
            reporter.print(f"{table}{'' if table.goes_on else ' to enqueue'}")
        reporter.confirm(f"Run the queue {spec.name} of migration {plan.name}?")
        return run_one_pass(connection, plan, request, options, reporter, unsettled="could not be settled")
