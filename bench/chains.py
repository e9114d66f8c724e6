"""The chain of the bench: examples/import, installed beside this checkout; its items, its consumers, their work."""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from psycopg.types.json import Jsonb

from bench.environment import execute
from rowferry.db.connection import call, connect
from rowferry.plan import MigrationSettings, Plan
from rowferry.plan_file import plan_document
from rowferry.queues import forget_queues
from rowferry_enqueue.request import describe_queues

EXAMPLE = Path(__file__).parent.parent / "examples" / "import"
PROCESSES, CONSUMERS = 8, 10
DEADLINE_SECONDS = 300
EMPTY_QUEUE = """
truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure, rowferry.worker;
delete from rowferry.migration
"""
ADD_BATCH = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count)
values (%s, %s, %s, %s)
"""


@contextmanager
def installed_example() -> Iterator[None]:
    """Install examples/import into a folder, which this process and its children import from."""
    with tempfile.TemporaryDirectory(prefix="rowferry-example-") as folder:
        options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", f"--target={folder}"]
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *options, str(EXAMPLE)]
        subprocess.run(command, check=True)
        before = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, [before])])
        sys.path.insert(0, folder)
        forget_queues()
        try:
            yield
        finally:
            sys.path.remove(folder)
            os.environ["PYTHONPATH"] = before


def list_tables() -> tuple[str, ...]:
    """Return the tables of the example, in the order of its chain."""
    from book_import.tables import TABLES  # noqa: PLC0415 - installed by then

    return TABLES


def make_items(count: int, names: int) -> list[dict[str, Any]]:
    """Return the items of the example's generator."""
    from book_import.items import generate_items  # noqa: PLC0415 - installed by then

    return list(generate_items(count, names=names))


def cut(items: Sequence[dict[str, Any]], size: int) -> list[list[dict[str, Any]]]:
    """Return the items in batches of this size."""
    return [list(items[first : first + size]) for first in range(0, len(items), size)]


def empty_tables() -> None:
    """Make the tables of the example anew, and empty rowferry's queue."""
    from book_import.tables import create_tables  # noqa: PLC0415 - installed by then

    with connect("bench", autocommit=True) as connection:
        create_tables(connection)
        connection.execute(EMPTY_QUEUE.encode())
        connection.execute("vacuum analyze rowferry.batch_queue, rowferry.batch_attempt, rowferry.batch_tally")


def enqueue_chain(
    batches: Sequence[Sequence[dict[str, Any]]], tables: Sequence[str], *, max_in_hand: int | None = None
) -> None:
    """Put batches of items in the queue of the first table; each queue hands them on to the next."""
    names = [f"import_{table}" for table in tables]
    queues: dict[str, dict[str, Any]] = {
        name: {} if max_in_hand is None else {"max_in_hand": max_in_hand} for name in names
    }
    for name, follower in pairwise(names):
        queues[name]["then"] = [follower]
    plan = Plan(MigrationSettings("import"), queue=queues)
    with connect("bench") as connection:
        (row,) = call(
            connection, "register_migration", "import", Jsonb(plan_document(plan)), Jsonb(describe_queues(plan))
        )
        with connection.cursor() as cursor:
            payloads = [Jsonb({"items": list(batch), "unsettled": None}) for batch in batches]
            cursor.executemany(
                ADD_BATCH.encode(),
                [(row["migration_id"], names[0], payload, len(payload.obj["items"])) for payload in payloads],
            )


def check_tables(items: Sequence[dict[str, Any]], tables: Sequence[str]) -> None:
    """Raise AssertionError unless each table counts each item once."""
    from book_import.check import find_differences  # noqa: PLC0415 - installed by then

    with connect("bench", autocommit=True) as connection:
        differences = find_differences(connection, items, tables)
    assert not differences, f"the tables differ from the items: {differences[:5]}"


def count_surplus(batches: Sequence[Sequence[dict[str, Any]]]) -> int:
    """Return how many items were written again, over all tables."""
    counted = sum(int(execute(f"select sum(books) from book.{table}")[0][0]) for table in list_tables())
    return counted - len(list_tables()) * sum(map(len, batches))


def read_deadlocks() -> int:
    """Return how many deadlocks the server has broken in this database so far."""
    # What a session counts is shown when it ends, or a second later.
    time.sleep(1.5)
    ((count,),) = execute("select deadlocks from pg_stat_database where datname = current_database()")
    return count


@dataclass(slots=True)
class Consumers:
    """Processes that run until they are told to stop; each then prints one line of JSON, or writes nothing."""

    command: Sequence[str]
    count: int = PROCESSES
    environment: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    _words: list[IO[str]] = field(default_factory=list)

    def start(self) -> None:
        """Start all of them."""
        for _ in range(self.count):
            self.start_one()

    def start_one(self) -> None:
        """Start another one."""
        words = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `stop`
        environment = {**os.environ, **self.environment}
        process = subprocess.Popen(self.command, env=environment, stdout=subprocess.PIPE, stderr=words, text=True)
        self.processes.append(process)
        self._words.append(words)

    def kill_one(self, number: int) -> None:
        """Kill one with SIGKILL and start another in its place."""
        victim = self.processes[number % len(self.processes)]
        victim.kill()
        victim.wait()
        self.start_one()

    def wait_until(self, is_done: Callable[[], bool], *, within: float = DEADLINE_SECONDS) -> bool:
        """Return whether the condition came true; AssertionError where a process ended by itself."""
        deadline = time.monotonic() + within
        while not is_done():
            for process, words in zip(self.processes, self._words, strict=True):
                assert process.poll() in {None, -signal.SIGKILL}, f"a process ended: {_read_end(words)}"
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def stop(self) -> list[Any]:
        """Stop all, and return what those said that said something."""
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        said: list[Any] = []
        try:
            for process in self.processes:
                out, _ = process.communicate(timeout=60)
                said += [json.loads(line) for line in out.splitlines()]
        finally:
            for process in self.processes:
                process.kill()
                process.wait()
            for words in self._words:
                words.close()
        return said


def _read_end(words: IO[str]) -> str:
    words.seek(0)
    return words.read()[-3000:]


def measure_pace(ended: Sequence[float]) -> dict[str, float]:
    """Return the batches a second between the tenth and the ninetieth of a hundred ends, and the span of all.

    So the time that processes take to start is left out.
    """
    ended = sorted(ended)
    first, last = len(ended) // 10, len(ended) * 9 // 10
    return {
        "batches_per_second": (last - first) / (ended[last] - ended[first]),
        "seconds_in_all": ended[-1] - ended[0],
    }


def describe_claims(claims: Sequence[float]) -> dict[str, float]:
    """Return the percentiles of what claims took."""
    cuts = statistics.quantiles(claims, n=100, method="inclusive")
    return {f"claim_p{percent}_ms": 1000 * cuts[percent - 1] for percent in (50, 95)}
