"""Checks every [queue.NAME] of a plan, and the queues that they lead to."""

from collections.abc import Iterator

from rowferry.db.connection import Connection
from rowferry.errors import UsageError
from rowferry.plan import Plan
from rowferry.queues import find_queue
from rowferry.s3.listing import OnProgress
from rowferry_enqueue.checks.finding import Finding, problem
from rowferry_enqueue.checks.queue_check import QueueCheck, run_own_check
from rowferry_enqueue.checks.tables import check_table


def check_queues(connection: Connection, plan: Plan, *, may_write: bool, on_progress: OnProgress) -> Iterator[Finding]:
    """Yield what is wrong with the queues of a plan, and what their own checks find."""
    for name in plan.queue:
        on_progress(f"looking at the queue {name}")
        try:
            spec = find_queue(name)
            settings = spec.read_settings(plan)
        except UsageError as error:
            yield problem(error)
            continue
        meant = [entries for entries in plan.entries if settings.means(entries.label)]
        tables = [queries for entries in meant for queries in check_table(connection, entries).usable]
        yield from run_own_check(
            QueueCheck(
                spec=spec,
                plan=plan,
                settings=settings,
                connection=connection,
                tables=tables,
                may_write=may_write,
                on_progress=on_progress,
            )
        )
