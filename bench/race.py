"""Processes that start together and take one job after the other, so that imports and logins are not measured.

`python -m bench.race QUEUE JOBS` is one of them: it finishes so many jobs of `rowferry` or `pgqueuer`, and tells when
it began, when it ended, and the seconds that each claim took.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any, NamedTuple

import psycopg

from rowferry.batch import Judgement, Verdict
from rowferry.db.connection import connect
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.verdict import write_verdict
from rowferry_worker.ledger import Ledger
from rowferry_worker.waiting_lines import WaitingLines

QUEUES = ["migrate"]
LONGEST_SECONDS = 600


class Race(NamedTuple):
    """What all processes have done together."""

    seconds: float
    """From the first one's begin to the last one's end."""
    claims: list[float]
    """The seconds of each."""


def start_together(commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> Race:
    """Let all commands begin at once, and wait for them.

    Raises AssertionError where one of them ends without having told.
    """
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, env=environment, **pipes) for command in commands]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", f"{process.args} did not come about"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        told = [json.loads(process.communicate(timeout=LONGEST_SECONDS)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    began, ended, claims = zip(*told, strict=True)
    return Race(max(ended) - min(began), [claim for of_one in claims for claim in of_one])


def finish_batches() -> Iterator[float]:
    """Claim and finish one batch after the other, as a worker does; yield the seconds that each claim took."""
    connection, ledger, lines = connect("bench"), Ledger(f"bench {os.getpid()}"), WaitingLines()
    ledger.flush()
    yield 0.0
    while True:
        began = time.perf_counter()
        batch = claim_batch(connection, QUEUES, lines=lines)
        claimed = time.perf_counter()
        assert batch is not None, "there are too few batches"
        attempt = begin_attempt(ledger, batch, ledger.worker_id)
        write_verdict(connection, batch, attempt, Judgement(Verdict.DONE), ())
        connection.commit()
        yield claimed - began


def finish_jobs() -> Iterator[float]:
    """The same with pgqueuer's own statements, without its event loop's other work."""
    jobs = work_on_jobs()
    loop = asyncio.new_event_loop()
    while True:
        yield loop.run_until_complete(anext(jobs))


async def work_on_jobs() -> AsyncIterator[float]:
    """Take and finish one job after the other; yield the seconds that each dequeue took, 0 at first."""
    from pgqueuer.ports.repository import EntrypointExecutionParameter  # noqa: PLC0415 # pyright: ignore
    from pgqueuer.queries import Queries  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

    connection = await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"], autocommit=True)
    queries: Any = Queries.from_psycopg_connection(connection)
    served: Any = {"bench": EntrypointExecutionParameter(0)}
    yield 0.0
    while True:
        began = time.perf_counter()
        (job,) = await queries.dequeue(1, served, uuid.uuid4(), None, timedelta(seconds=60))
        claimed = time.perf_counter()
        await queries.log_jobs([(job, "successful", None)])
        yield claimed - began


WORK: dict[str, Callable[[], Iterator[float]]] = {"rowferry": finish_batches, "pgqueuer": finish_jobs}


def main(queue: str, jobs: int) -> None:
    """Log in, say so, wait for the word, and tell what was done."""
    work = WORK[queue]()
    next(work)
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    claims = list(islice(work, jobs))
    print(json.dumps([began, time.monotonic(), claims]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
