"""Workers that run for so many seconds over more rows than they can finish, and what was seen meanwhile."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import IO

from bench.migration import enqueue_rows, fix_pace, make_rows
from bench.servers import BenchServer, trust
from bench.watch import Sample, Watch, between, rate
from rowferry.db.connection import connect
from rowferry_cli.work.enqueue import command as enqueue_command

BATCH_SIZE = next(int(str(option.default)) for option in enqueue_command.params if option.name == "batch_size")
"""What `rowferry enqueue` makes unless told otherwise."""
STOP_SECONDS = 60.0
"""How long a worker may take to end after SIGTERM."""
WORKER = (sys.executable, "-m", "rowferry_cli", "worker", "--log-format=json")
COUNTS = "select count(*) filter (where path like 'avatar/%') as done, count(*) as rows from pictures"


@dataclass(frozen=True, slots=True)
class Launch:
    """A worker to start; without more, one process and no other flag."""

    arguments: tuple[str, ...] = ("--processes=1",)
    environment: Mapping[str, str] = field(default_factory=dict)

    def with_arguments(self, *arguments: str) -> "Launch":
        """Return the same with further arguments."""
        return replace(self, arguments=(*self.arguments, *arguments))

    def with_environment(self, **variables: str) -> "Launch":
        """Return the same with further variables."""
        return replace(self, environment={**self.environment, **variables})

    def trusting(self, *servers: BenchServer) -> "Launch":
        """Return the same, which trusts the certificates of these servers."""
        return self.with_environment(**trust("AWS_CA_BUNDLE", *servers))

    @staticmethod
    def fixed(parallel: int) -> "Launch":
        """Return a worker that has so many objects in flight whatever happens."""
        return Launch(("--processes=1", *fix_pace(parallel)))

    @staticmethod
    def named(account: str) -> "Launch":
        """Return a worker with an access key of its own, by which a server can tell it from others."""
        return Launch(environment={"ROWFERRY_PRODUCTION_ACCESS_KEY_ID": account})


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to a server while workers run."""

    at: float
    """Seconds since the workers were started."""
    act: Callable[[], object]


@dataclass(frozen=True, slots=True)
class TimedRun:
    """What was seen of a timed run."""

    samples: list[Sample]
    rows: int
    """Rewritten, in all."""
    cpu_seconds: float
    """Of all workers, from start to end."""

    def figures(self, first: float, last: float) -> dict[str, float]:
        """Return the pace between two times, the CPU an entry there, and the pace from the first object on."""
        begin, end = between(self.samples, first, last)
        done = max(end.objects - begin.objects, 1)
        first_at = next((sample.at for sample in self.samples if sample.objects), first)
        return {
            "entries_per_second": rate(self.samples, first, last),
            "entries_per_second_from_the_start": rate(self.samples, first_at, last),
            "cpu_ms_per_entry": 1000 * (end.cpu_seconds - begin.cpu_seconds) / done,
            "megabytes_per_second": (end.megabytes - begin.megabytes) / (end.at - begin.at),
            "server_cpu_ms_per_entry": 1000 * (end.server_cpu_seconds - begin.server_cpu_seconds) / done,
            "cores_of_worker": (end.cpu_seconds - begin.cpu_seconds) / (end.at - begin.at),
            "seconds_to_the_first_object": first_at,
        }


def fill_queue(watch: Watch, rows: int, batch_size: int = BATCH_SIZE) -> None:
    """Make the table anew and enqueue all of it, between the watched servers."""
    make_rows(rows)
    legacy = (watch.legacy or watch.production).endpoint_url
    enqueue_rows(legacy, watch.production.endpoint_url, batch_size)


def run_for(
    seconds: float, watch: Watch, workers: Sequence[Launch], events: Sequence[Event] = (), counts: str = COUNTS
) -> TimedRun:
    """Run workers for so long, then stop them; `counts`: the query for the rows that are done, and all of them.

    Raises AssertionError where a worker ended by itself, a row was left behind its object, or nothing was left to do.
    """
    with ExitStack() as stack:
        words = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in workers]
        processes = [start(worker, file) for worker, file in zip(workers, words, strict=True)]
        try:
            watch.start([process.pid for process in processes])
            timers = [threading.Timer(event.at, event.act) for event in events]
            for timer in timers:
                timer.start()
            time.sleep(seconds)
            for process, file in zip(processes, words, strict=True):
                assert process.poll() is None, f"a worker ended with {process.returncode}: {last_words(file)}"
            watch.stop()
            cpu_seconds = stop(processes)
        finally:
            watch.stop()
            for process in processes:
                process.kill()
    return TimedRun(watch.samples, check_rows(watch, counts), cpu_seconds)


def start(worker: Launch, words: IO[str]) -> subprocess.Popen[bytes]:
    """Start a worker; what it says goes to a file."""
    environment = {**os.environ, **worker.environment}
    return subprocess.Popen(
        [*WORKER, *worker.arguments], env=environment, stdin=subprocess.DEVNULL, stdout=words, stderr=words
    )


def stop(processes: Sequence[subprocess.Popen[bytes]]) -> float:
    """Stop the workers and return the CPU seconds that they have used, their children's included."""
    for process in processes:
        process.send_signal(signal.SIGTERM)
    used, deadline = 0.0, time.monotonic() + STOP_SECONDS
    for process in processes:
        while process.returncode is None:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                used += usage.ru_utime + usage.ru_stime
            else:
                assert time.monotonic() < deadline, "a worker did not stop"
                time.sleep(0.05)
    return used


def check_rows(watch: Watch, query: str = COUNTS) -> int:
    """Return how many rows were rewritten; AssertionError where that cannot be, or nothing was left to do."""
    with connect("bench", autocommit=True) as connection:
        counts = connection.execute(query.encode()).fetchone()
    assert counts is not None
    objects = watch.production.read_stats()["objects"]
    assert counts["done"] <= objects, f"{counts['done']} rows are production, and there are {objects} objects"
    assert counts["done"] < counts["rows"], f"the workers had too few rows: {counts['rows']}"
    return int(counts["done"])


def last_words(file: IO[str]) -> str:
    """Return the end of what a worker has said."""
    file.seek(0)
    return file.read()[-2000:]
