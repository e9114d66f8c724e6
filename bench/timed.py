"""Workers that run for so many seconds over more rows than they can finish, and what the S3 server saw meanwhile."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, NamedTuple

from bench.migration import BATCH_SIZE, count_rows, enqueue_rows, make_rows
from rowferry_lab.servers.s3_servers import FakeS3Server
from rowferry_lab.servers.server_process import ServerFailed

EVERY_SECONDS = 0.25
STOP_SECONDS = 60.0
"""How long a worker may take to end after SIGTERM."""
WORKER = (sys.executable, "-m", "rowferry_cli", "worker", "--processes=1", "--log-format=json")


class Sample(NamedTuple):
    """What the server had seen at one time; every count is that since its start."""

    at: float
    """Seconds since the workers were started."""
    objects: int
    """Stored in `production`."""
    accepted: Mapping[str, int]
    """Writes, by access key."""
    refused: int
    """Writes."""


class Event(NamedTuple):
    """Something that happens to the server while workers run."""

    at: float
    """Seconds since the workers were started."""
    act: Callable[[], object]


def run_for(
    seconds: float, server: FakeS3Server, workers: Sequence[Mapping[str, str]], events: Sequence[Event] = ()
) -> list[Sample]:
    """Run workers for so long, each with its environment, then stop them; return what was seen.

    Raises AssertionError where a worker ended by itself, a row was left behind its object, or nothing was left to do.
    """
    with ExitStack() as stack:
        words = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in workers]
        processes = [start(environment, file) for environment, file in zip(workers, words, strict=True)]
        try:
            for event in events:
                threading.Timer(event.at, event.act).start()
            with watching(server) as samples:
                time.sleep(seconds)
            for process, file in zip(processes, words, strict=True):
                assert process.poll() is None, f"a worker ended with {process.returncode}: {read_last_words(file)}"
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                process.wait(STOP_SECONDS)
        finally:
            for process in processes:
                process.kill()
    check_rows(server)
    return samples


def fill_queue(server: FakeS3Server, rows: int) -> None:
    """Make the table anew and enqueue all of it, within the server."""
    make_rows(rows)
    enqueue_rows(server.endpoint_url, server.endpoint_url, BATCH_SIZE)


def start(environment: Mapping[str, str], words: IO[str]) -> subprocess.Popen[bytes]:
    """Start a worker; what it says goes to a file."""
    both = {**os.environ, **environment}
    return subprocess.Popen(WORKER, env=both, stdin=subprocess.DEVNULL, stdout=words, stderr=words)


@contextmanager
def watching(server: FakeS3Server) -> Iterator[list[Sample]]:
    """Ask the server several times a second, from a thread; yield the samples, which grow meanwhile."""
    samples, is_over, began = list[Sample](), threading.Event(), time.monotonic()

    def look_on() -> None:
        while not is_over.wait(EVERY_SECONDS):
            try:
                stats = server.read_stats()
            except ServerFailed:
                continue  # It has an outage.
            refused = sum(stats["writes_refused"].values())
            samples.append(Sample(stats["seconds"] - began, stats["objects"], stats["writes_accepted"], refused))

    thread = threading.Thread(target=look_on, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        is_over.set()
        thread.join()


def check_rows(server: FakeS3Server) -> None:
    """Raise AssertionError where more rows were rewritten than there are objects, or nothing was left to do."""
    done, rows = count_rows()
    objects = server.read_stats()["objects"]
    assert done <= objects, f"{done} rows are production, and there are {objects} objects"
    assert done < rows, f"the workers had too few rows: {rows}"


def between(samples: Sequence[Sample], first: float, last: float) -> tuple[Sample, Sample]:
    """Return the samples nearest to two times. Raises AssertionError where there are not two."""
    found = [min(samples, key=lambda sample: abs(sample.at - at)) for at in (first, last)]
    assert found[0].at < found[1].at, f"no samples between {first:.1f} s and {last:.1f} s"
    return found[0], found[1]


def rate(samples: Sequence[Sample], first: float, last: float) -> float:
    """Return the objects a second between two times."""
    begin, end = between(samples, first, last)
    return (end.objects - begin.objects) / (end.at - begin.at)


def read_last_words(file: IO[str]) -> str:
    """Return the end of what a worker has said."""
    file.seek(0)
    return file.read()[-2000:]
