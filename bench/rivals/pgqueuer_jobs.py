"""pgqueuer with jobs that do nothing: `install`, `fill JOBS`, `work BATCH_SIZE`; see bench/benches/rivals.py.

As its own benchmark drives it: asyncpg, uvloop, `drain`. One worker is one process with one connection.
"""

import asyncio
import os
import sys

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from bench.starting_gate import Run, wait_for_start


async def main(command: str, number: int = 0) -> None:
    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    queries = Queries(AsyncpgDriver(connection))
    match command:
        case "install":
            await queries.install()
        case "fill":
            await connection.execute("truncate pgqueuer, pgqueuer_log")
            await queries.enqueue(["nothing"] * number, [None] * number, [0] * number)
            await connection.execute("vacuum analyze pgqueuer")
        case "work":
            await work(PgQueuer(AsyncpgDriver(connection)), number)


async def work(worker: PgQueuer, batch_size: int) -> None:
    done = 0

    @worker.entrypoint("nothing")
    async def nothing(_job: Job) -> None:
        nonlocal done
        done += 1

    run = Run(await asyncio.to_thread(wait_for_start))
    await worker.run(batch_size=batch_size, mode=QueueExecutionMode.drain)
    run.tell(done)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], *map(int, sys.argv[2:])))
