"""What no enqueue does, whichever command asks for it."""

from rowferry.db.connection import Connection
from rowferry.errors import UsageError
from rowferry.formatting import count_batches
from rowferry.plan import Plan
from rowferry.queue_spec import QueueSpec
from rowferry.queues import find_queue, list_following, list_queues, read_settings
from rowferry.reports.progress import read_counts
from rowferry_enqueue.checks.finding import refuse_first
from rowferry_enqueue.checks.queues.columns import check_columns
from rowferry_enqueue.checks.queues.plan import judge_queue, read_queue
from rowferry_enqueue.request import EnqueueRequest


def refuse_foreign_code(plan: Plan, queue: QueueSpec) -> None:
    """Raise UsageError where the plan names code for a queue, or one that it leads to, that is not allowed here."""
    for name in list_following(queue.name, read_settings(plan)):
        spec = find_queue(name)
        spec.refuses(spec.read_settings(plan))


def refuse_unfit_queues(connection: Connection, plan: Plan, queue: QueueSpec) -> None:
    """Raise UsageError where a side, a table or a column is not there that a queue, or one that it leads to, uses."""
    for name in list_following(queue.name, read_settings(plan)):
        planned = read_queue(plan, name)
        refuse_first(judge_queue(plan, planned))
        refuse_first(check_columns(connection, plan, planned, as_worker=False))


def refuse_undoing(connection: Connection, plan: Plan, request: EnqueueRequest) -> None:
    """Raise UsageError where no row that moves is meant, or batches wait that would move rows again."""
    spec = request.queue
    if not request.choose(plan):
        meant = [*request.choose_all(plan), *request.within.choose_objects(plan)]
        raise UsageError(
            f"No row moves with the objects of {', '.join(part.label for part in meant)}, so there is nothing to "
            f"{spec.name}: point the application at the legacy bucket {plan.legacy.bucket} again, or name another "
            "table with --table."
        )
    form = request.find_form(plan)
    for name in list_queues():
        try:
            other = find_queue(name)
        except UsageError:  # a faulty package, whose queue no worker of this host serves
            continue
        if (other.form, other.gives_form) != (spec.gives_form, form):
            continue
        if waiting := read_counts(connection, plan.name, name).batches_init:
            raise UsageError(
                f"{count_batches(waiting)} of migration {plan.name} still wait in the queue {name} and would undo what "
                f"{spec.name} does: let the workers finish them, or delete them from rowferry.batch_queue."
            )
