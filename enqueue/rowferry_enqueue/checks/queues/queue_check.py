"""Checks every [queue.NAME] of a plan, and the queues that they lead to: plan, tables, then the check of its own.

That is the function that `QueueSpec.check` names.

`check(context: QueueCheck) -> Iterable[Finding]` yields `fine`, `note` and `problem` (checks/finding.py). It writes no
row. It may raise RowferryError or psycopg.Error, which become a problem in its place.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any

import psycopg

from rowferry.db.connection import Connection, summarise
from rowferry.db.entries import EntryQueries
from rowferry.errors import RowferryError, UsageError
from rowferry.plan import Entries, ObjectPrefix, Plan, SideName
from rowferry.progress import OnProgress, ignore_progress
from rowferry.queue_spec import QueueSpec, describe_fault
from rowferry.queues import find_circle
from rowferry.s3.client import ObjectClient, open_object_client
from rowferry_enqueue.checks.finding import Finding, find_problems, fine, problem
from rowferry_enqueue.checks.queues.columns import check_columns
from rowferry_enqueue.checks.queues.plan import PlannedQueue, judge_chain, judge_queue, read_queue
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
            entries=queue.entries,
            objects=queue.objects,
            tables=meant,
            may_write=may_write,
            on_progress=on_progress,
        )
        if not find_problems(findings):
            findings += run_own_check(context)
        if not find_problems(findings):
            findings.insert(0, fine(queue.describe()))
        yield from findings


def _list_followers(plan: Plan) -> list[str]:
    """Return the names in `then` of a plan, whatever they are."""
    return [name for queue in plan.queue.values() for name in _list_followers_of(queue)]


def _find_circle(plan: Plan) -> Iterator[Finding]:
    graph = {name: _list_followers_of(queue) for name, queue in plan.queue.items()}
    if circle := find_circle(graph):
        yield problem(f"the queues of the plan lead back to themselves by `then`, {circle}", "leave one of them out")


def _list_followers_of(queue: dict[str, object]) -> list[str]:
    then = queue.get("then")
    return [str(name) for name in then] if isinstance(then, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


DEADLINE = timedelta(seconds=30)
"""Of one request."""
CONNECTIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCheck:
    """One queue of a plan, and the means to look at what it needs."""

    spec: QueueSpec
    plan: Plan
    settings: Any
    """The plan's [queue.NAME], of the type `spec.settings`."""
    connection: Connection
    """In autocommit: what may fail goes into a transaction of its own."""
    entries: Sequence[Entries]
    """The [[entries]] that the queue works on."""
    objects: Sequence[ObjectPrefix]
    """The [[objects]] that the queue works on; `settings.buckets` has the prefixes that it names itself."""
    tables: Sequence[EntryQueries] = ()
    """The tables of the entries that the queue works on, as far as they can be read."""
    may_write: bool = True
    """Whether a probe object may be written to the production bucket, and removed again."""
    on_progress: OnProgress = ignore_progress

    @contextmanager
    def open_bucket(self, side: SideName) -> Generator[ObjectClient]:
        """Yield the client that workers use. Raises RowferryError where it cannot be opened."""
        client = open_object_client(self.plan.side(side), max_in_flight=CONNECTIONS, deadline=DEADLINE)
        with closing(client):
            yield client


def run_own_check(context: QueueCheck) -> Iterable[Finding]:
    """Return what the queue's own check finds."""
    if context.spec.check is None:
        return ()
    module, _, function = context.spec.check.partition(":")
    try:
        return list(getattr(import_module(module), function)(context))
    except psycopg.Error as error:
        return (problem(f"the queue {context.spec.name} could not be checked: {summarise(error)}"),)
    except RowferryError as error:
        return (problem(error),)
    except Exception as error:  # noqa: BLE001 - of another package: the other queues are checked all the same
        words = describe_fault(error)
        return (problem(f"the check of queue {context.spec.name}, {context.spec.check}, failed: {words}", "fix it"),)
