"""Checks every [queue.NAME] of a plan, and the queues that they lead to: what the plan says, then what tables have."""

from collections.abc import Iterator, Sequence

from rowferry.db.connection import Connection
from rowferry.errors import UsageError
from rowferry.plan import Plan
from rowferry.progress import OnProgress
from rowferry.queues import find_circle
from rowferry_enqueue.checks.finding import Finding, fine, problem
from rowferry_enqueue.checks.queues.columns import check_columns
from rowferry_enqueue.checks.queues.plan import PlannedQueue, judge_chain, judge_queue, read_queue
from rowferry_enqueue.checks.queues.queue_check import QueueCheck, run_own_check
from rowferry_enqueue.checks.rows.tables import CheckedTable


def check_queues(
    connection: Connection,
    plan: Plan,
    checked: Sequence[CheckedTable],
    *,
    may_write: bool,
    on_progress: OnProgress,
) -> Iterator[Finding]:
    """Yield what is wrong with the queues of a plan, and what their own checks find.

    `checked`: the tables of the plan, as `check_table` found them.
    """
    planned: dict[str, PlannedQueue] = {}
    for name in dict.fromkeys([*plan.queue, *_list_followers(plan)]):
        try:
            planned[name] = read_queue(plan, name)
        except UsageError as error:
            yield problem(error)
    yield from _find_circle(plan)
    for queue in planned.values():
        findings = [*judge_queue(plan, queue), *judge_chain(queue, planned)]
        on_progress(f"looking at the queue {queue.spec.name}")
        findings += check_columns(connection, plan, queue)
        meant = [table.usable[0] for table in checked if table.usable and table.entries in queue.entries]
        context = QueueCheck(
            spec=queue.spec,
            plan=plan,
            settings=queue.settings,
            connection=connection,
            tables=meant,
            may_write=may_write,
            on_progress=on_progress,
        )
        if not any(finding.level == "problem" for finding in findings):
            findings += run_own_check(context)
        if not any(finding.level == "problem" for finding in findings):
            findings.insert(0, fine(queue.describe()))
        yield from findings


def _list_followers(plan: Plan) -> list[str]:
    """Return the names in `then` of a plan, whatever they are."""
    said = [queue.get("then") for queue in plan.queue.values()]
    return [str(name) for names in said if isinstance(names, list) for name in names]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _find_circle(plan: Plan) -> Iterator[Finding]:
    graph = {name: _list_followers_of(queue) for name, queue in plan.queue.items()}
    if circle := find_circle(graph):
        yield problem(f"the queues of the plan lead back to themselves by `then`, {circle}", "leave one of them out")


def _list_followers_of(queue: dict[str, object]) -> list[str]:
    then = queue.get("then")
    return [str(name) for name in then] if isinstance(then, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
