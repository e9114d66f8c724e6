"""A cutover in this process, whose workers end each batch as a test says; no S3."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

from psycopg.types.json import Jsonb

from rowferry.db.connection import connect
from rowferry_cli.cutover.steps import Cutover
from rowferry_cli.log_file import log_to_file
from rowferry_cli.migrate import passes
from rowferry_cli.migrate.passes import Run
from rowferry_cli.options import WorkerOptions
from rowferry_cli.reporter import Reporter
from rowferry_enqueue.enqueue import EnqueueRequest
from rowferry_queues.migrate.spec import MIGRATE, MigrateChoices
from support.entries.entry_table import EntryTable

END = """
update rowferry.batch_queue set
    status = case when (o.counts ->> 'failed')::int + (o.counts ->> 'missing')::int > 0 then 'ERROR' else 'DONE' end,
    finished_at = now(), migrated = (o.counts ->> 'migrated')::int, failed = (o.counts ->> 'failed')::int,
    missing = (o.counts ->> 'missing')::int,
    kept = entry_count - (o.counts ->> 'migrated')::int - (o.counts ->> 'failed')::int - (o.counts ->> 'missing')::int
from (select %s::jsonb as counts) as o
where id = %s
"""
Outcomes = dict[str, int]
"""Of the entries of a batch, how many are migrated, missing or failed; the others are kept."""


@dataclass
class Finishers:
    """Workers that end each batch that waits, as `judge` says."""

    table: EntryTable
    judge: Callable[[dict[str, Any]], Outcomes]
    ended_by_mistake: bool = False
    last_words: str = ""
    dead_pids: frozenset[int] = frozenset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None: ...

    def replace_dead(self) -> int:
        for batch in self.table.batches():
            if batch["status"] == "INIT":
                counts = {"migrated": 0, "missing": 0, "failed": 0} | self.judge(batch)
                self.table.execute(END, (Jsonb(counts), batch["id"]))
        return 0


@dataclass
class Step:
    """What one call of `rowferry cutover` has said, and its exit status."""

    status: int
    words: str


def cut_over(
    table: EntryTable,
    judge: Callable[[dict[str, Any]], Outcomes] = lambda _batch: {},
    *,
    finish: bool = False,
    **choices: Any,
) -> Step:
    """Run a step of the cutover to its end, without a terminal."""
    plan = table.read_plan()
    request = EnqueueRequest(MIGRATE, 100, choices=MigrateChoices(**choices))
    said = io.StringIO()
    workers, log_path = _with_workers(Finishers(table, judge)), Path(os.devnull)
    with workers, connect("cutover", autocommit=True) as connection, log_to_file(log_path) as log:
        reporter = Reporter(yes=True)
        reporter.console.file = said
        run = Run(connection, plan, request, WorkerOptions(processes=None, parallel=None, log_file=None), reporter, log)
        status = Cutover(run, plan.copies_alone, as_json=False).run_to_end(finish=finish)
    return Step(status, said.getvalue())


@contextmanager
def _with_workers(finishers: Finishers) -> Iterator[None]:
    """Give runs these workers, which are asked again at once, and no terminal."""
    with (
        patch.object(Run, "workers", lambda _self: finishers),
        patch.object(passes, "POLL_INTERVAL", timedelta(0)),
        patch.object(sys, "stdin", io.StringIO()),
    ):
        yield
