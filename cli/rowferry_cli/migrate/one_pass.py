"""One pass of any queue, with this host's workers or others, from the first batch to the exit status."""

from collections.abc import Sequence

from rowferry.db.connection import Connection
from rowferry.formatting import count_batches
from rowferry.plan import Plan
from rowferry_cli.log_file import log_to_file
from rowferry_cli.messages import STOPPED, describe_enqueued, describe_errors, describe_pause
from rowferry_cli.migrate.passes import Run, name_log
from rowferry_cli.options import WorkerOptions
from rowferry_cli.reporter import Reporter
from rowferry_cli.status.pause import find_pause
from rowferry_cli.throughput import Throughput
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue


def run_one_pass(
    connection: Connection,
    plan: Plan,
    request: EnqueueRequest,
    options: WorkerOptions,
    reporter: Reporter,
    *,
    unsettled: str,
) -> int:
    """Run one pass, report it, and return the exit status.

    The status is 1 where entries are left over, which `unsettled` describes, else 0.
    """
    if options.processes == 0:
        tables = enqueue(connection, plan, request)
        entries, batches = sum(table.entries for table in tables), sum(table.batches for table in tables)
        reporter.print(describe_enqueued(entries, batches))
        return 0
    log_path = options.log_file or name_log(plan, request)
    with log_to_file(log_path) as log:
        run = Run(connection, plan, request, options, reporter, log)
        chain = run.one_pass()
        reporter.report_end(chain)
    reporter.report_outcomes(chain)
    reporter.print(f"Log: {log_path}")
    return _say_what_is_left(run, chain, unsettled)


def _say_what_is_left(run: Run, chain: Sequence[Throughput], unsettled: str) -> int:
    """Print what is left of a pass, in one line a queue, and return the exit status."""
    if paused := find_pause(run.connection, run.plan.name):
        run.reporter.print(describe_pause(run.plan.name, paused))
        return 1
    left = [each for each in chain if each.counts.unsettled]
    for each in left:
        words = unsettled if each.queue == run.request.queue.name else f"unsettled in the queue {each.queue}"
        run.reporter.print(f"{each.counts.unsettled:,} {words} (see `rowferry errors`)")
    names = [each.queue for each in left]
    old = {name: counts for name, counts in run.chain.read().of.items() if counts.batches_error and name not in names}
    for name, counts in old.items():
        run.reporter.print(describe_errors(counts.batches_error, f" of an earlier pass in the queue {name}"))
    paused = report_paused_queues(run)
    if left or old:
        run.reporter.print(f"What to do next: {STOPPED}")
    return 1 if left or old or paused else 0


def report_paused_queues(run: Run) -> bool:
    """Print which queues an operator has paused while batches wait there; return whether there is one."""
    counts = run.chain.read()
    found = {name: counts.of[name].batches_init for name in counts.of if name in counts.paused}
    for name, batches in found.items():
        if batches:
            where = f"{count_batches(batches)} left waiting in the queue {name}, which is paused"
            resume = f"rowferry resume --queue {name} --migration {run.plan.name}"
            run.reporter.print(f"{where}: run `{resume}`, then this command again.")
    return any(found.values())
