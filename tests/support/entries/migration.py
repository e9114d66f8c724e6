"""A migration to test with: a table, objects and a plan of its own, the ways to run it, and an auditor of its end."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from rowferry_lab.servers.s3_servers import S3Server
from support.entries.entry_table import FROM, EntryTable
from support.processes.cli import run_rowferry
from support.processes.processes import COMMAND_DEADLINE
from support.processes.worker_process import WorkerProcess, eventually
from support.queue.at_work import at_work
from support.queue.workers_here import run_here
from support.s3.buckets import Buckets
from support.s3.objects import digest, legacy_side, production_side


class Migration(EntryTable):
    """A table of entries, two buckets, and the plan that moves the one with the other."""

    def __init__(
        self, dsn: str, legacy: Buckets, production: Buckets, folder: Path, *, id_type: str = "bigint"
    ) -> None:
        """Make the table; the legacy bucket is one of `legacy`, the production bucket one of `production`."""
        super().__init__(dsn, id_type=id_type)
        self.folder = folder
        self.legacy, self.production = legacy_side(legacy), production_side(production)
        self._servers = {"LEGACY": legacy.server, "PRODUCTION": production.server}
        self.plan["legacy"] = {"bucket": self.legacy.bucket, "endpoint_url": self.legacy.endpoint_url}
        self.plan["production"] = {"bucket": self.production.bucket, "endpoint_url": self.production.endpoint_url}
        self.bodies: dict[str, bytes] = {}
        """What the object of each row must hold, by the row's id."""

    @property
    def legacy_server(self) -> S3Server:
        """The server that holds the legacy bucket, with its credentials."""
        return self._servers["LEGACY"]

    def reach_through(self, endpoint_url: str) -> None:
        """Let workers reach both sides at another address than the test does."""
        self.plan["legacy"]["endpoint_url"] = self.plan["production"]["endpoint_url"] = endpoint_url

    # What there is to migrate

    def add_row(self, row_id: object, key: str | None, body: bytes | None = None) -> Self:
        """Add a row; `body` is what the object that it points at must always hold."""
        self.execute("insert into public.avatars values (%s, %s)", (row_id, key))
        if body is not None:
            self.bodies[str(row_id)] = body
        return self

    def add(self, row_id: object, name: str, body: bytes | None = None, **properties: Any) -> Self:
        """Add a legacy object and the row that points at it."""
        body = f"body of {name}".encode() if body is None else body
        self.legacy.put(FROM + name, body, **properties)
        return self.add_row(row_id, FROM + name, body)

    def fill(self, count: int, start: int = 1) -> Self:
        """Add many small legacy objects, and rows with rising ids that point at them."""
        numbers = range(start, start + count)
        bodies = {self.id_of(number): f"body of {number}".encode() for number in numbers}
        keys = {self.id_of(number): f"{FROM}u{number}/me.png" for number in numbers}
        for row_id, key in keys.items():
            self.legacy.put(key, bodies[row_id])
        self.insert(keys)
        self.bodies |= bodies
        return self

    def given(self, count: int, batch_size: int = 100, *, start: int = 1, **request: Any) -> Self:
        """Fill, and enqueue what there is."""
        self.fill(count, start).enqueue(batch_size, **request)
        return self

    # What is done with it

    @property
    def environment(self) -> dict[str, str]:
        """What this process, and those that it starts, must find in its environment to work on the migration."""
        found = {"DATABASE_URL": self.dsn, "ROWFERRY_PLAN": str(self.plan_path)}
        for side, server in self._servers.items():
            found[f"ROWFERRY_{side}_ACCESS_KEY_ID"] = server.access_key
            found[f"ROWFERRY_{side}_SECRET_ACCESS_KEY"] = server.secret_key
        return found

    @property
    def plan_path(self) -> Path:
        return self.folder / "rowferry.toml"

    def write_plan(self) -> Self:
        """Write the plan as the file that the commands read."""
        self.plan_path.write_text(to_toml(self.plan), encoding="utf-8")
        return self

    def migrate(self, batch_size: int = 100, *, parallel: int = 16, **request: Any) -> dict[str, int]:
        """Enqueue, and work on all of it."""
        self.enqueue(batch_size, **request)
        return self.work(parallel=parallel)

    def work(self, *queues: str, parallel: int = 16) -> dict[str, int]:
        """Work in this process on all batches that are due now, one after the other; of `migrate` unless told.

        Return what `counts` does. A migration that is skipped for a while is skipped to the end, however slow the
        machine is.
        """
        with at_work(parallel, queues or ("migrate",), clock=lambda: 0.0) as take_turn:
            while take_turn():
                pass
        return self.counts()

    def work_again(self, *queues: str, times: int = 1) -> dict[str, int]:
        """Work on what rests as well, so many times; `queues`: as `work` takes them."""
        for _ in range(times):
            self.make_due()
            self.work(*queues)
        return self.counts()

    def run_queue(self, batch_size: int = 100, *, queue: str, **request: Any) -> dict[str, int]:
        """Enqueue for a queue, work on all of it, and return the counts of all its batches; each balances."""
        self.enqueue(batch_size, queue=queue, **request)
        self.work(queue)
        self.check_balance()
        return self.counts(queue)

    def requeue(self) -> None:
        """Put back all batches in error."""
        self.execute("select rowferry.requeue()")

    def at_work(
        self, parallel: int = 16, queues: Iterable[str] = ("migrate",)
    ) -> AbstractContextManager[Callable[[], bool]]:
        """Yield a function that works on the next due batch, and returns False when none is due."""
        return at_work(parallel, queues)

    def finish_after_kills(self, *queues: str, deadline: timedelta = COMMAND_DEADLINE) -> None:
        """Work in this process until no batch waits, also on those of workers that were killed a moment ago.

        `queues`: as `work` takes them.
        """
        self.execute("delete from rowferry.worker")  # lest a claim waits for their heartbeats

        def is_done() -> bool:
            self.work_again(*queues)
            return "INIT" not in self.statuses()

        eventually(is_done, deadline=deadline)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return run_rowferry(arguments, {**os.environ, **environment}, self.folder)

    def run_here(self, *arguments: str, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end in this process, with the workers that it starts."""
        return run_here(self.folder, *arguments, typed=typed, **environment)

    @contextmanager
    def workers(self, count: int, *arguments: str, **environment: str) -> Iterator[list[WorkerProcess]]:
        """Yield running `rowferry worker` processes; kill those that are left in the end."""
        logs = [self.folder / f"worker-{len(list(self.folder.iterdir()))}-{number}.log" for number in range(count)]
        workers = [WorkerProcess(arguments, {**os.environ, **environment}, log) for log in logs]
        try:
            yield workers
        finally:
            for worker in workers:
                worker.kill()
                sys.stdout.write(worker.log)  # which pytest shows where a test fails

    # What has become of it

    def failure_of(self, row_id: object) -> tuple[str, str, str]:
        """Return outcome, reason and error of an entry."""
        (found,) = [failure for failure in self.failures() if failure["entry_id"] == str(row_id)]
        return found["outcome"], found["reason"], found["error"]

    def wait_until_done(self) -> None:
        """Return when no batch is INIT any more."""
        eventually(lambda: "INIT" not in self.statuses(), deadline=COMMAND_DEADLINE)

    def audit(self, *, legacy_left: Iterable[object] = ()) -> None:
        """Hold every row against its object, every batch against its counts; `legacy_left`: ids of legacy rows."""
        rows = self.rows()
        left = {row_id for row_id, key in rows.items() if key is not None and key.startswith(FROM)}
        assert left == {str(row_id) for row_id in legacy_left}
        for row_id, key in rows.items():
            if row_id in self.bodies:
                assert key is not None, row_id
                side = self.legacy if key.startswith(FROM) else self.production
                assert digest(side.read(key)) == digest(self.bodies[row_id]), (row_id, key)
        self.check_balance()


def to_toml(document: Mapping[str, Any]) -> str:
    """Return the plan as TOML: tables of values, and lists of such tables."""
    lines: list[str] = []
    for name, table in document.items():
        for one in table if isinstance(table, list) else [table]:
            lines.append(f"[[{name}]]" if isinstance(table, list) else f"[{name}]")
            lines += [f"{key} = {write_value(value)}" for key, value in one.items()]
    return "\n".join(lines) + "\n"


def write_value(value: Any) -> str:
    """Return a string, number, boolean, list or inline table as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {write_value(each)}" for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
