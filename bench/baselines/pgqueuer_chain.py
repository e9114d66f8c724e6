"""Baseline: one process of pgqueuer with the chain of examples/import, as many jobs at once as it has connections.

    python -m bench.baselines.pgqueuer_chain CONSUMERS

works until SIGTERM and prints one JSON line: the times at which jobs ended. The next job is put in the queue in the
transaction that writes the table. pgqueuer notes the end of a job later, apart: a killed process writes again what it
has not noted, so that each batch is written at least once, where rowferry writes it once.
"""

import asyncio
import json
import os
import signal
import sys
import time
from functools import partial
from typing import Any

import asyncpg  # pyright: ignore[reportMissingImports]
from book_import.tables import TABLES, WRITE, compose
from pgqueuer.models import Job  # pyright: ignore[reportMissingImports]
from pgqueuer.qm import QueueManager  # pyright: ignore[reportMissingImports]
from pgqueuer.queries import Queries  # pyright: ignore[reportMissingImports]
from psycopg import sql

ended: list[float] = []


async def write(pool: Any, statement: str, table: str, follower: str | None, job: Job) -> None:
    """Write the items of a job into a table, and put them in the queue of the next one."""
    assert job.payload is not None
    items = json.loads(job.payload)
    names, published = [item[table] for item in items], [item["published"] for item in items]
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(statement, names, published)
        if follower is not None:
            await Queries.from_asyncpg_connection(connection).enqueue(follower, job.payload)
    ended.append(time.time())


async def main(consumers: int) -> None:
    """Work until SIGTERM."""
    # One connection is for notices.
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=1, max_size=consumers + 1) as pool:
        manager = QueueManager(Queries.from_asyncpg_pool(pool))
        for table, follower in zip(TABLES, (*TABLES[1:], None), strict=True):
            statement = compose(WRITE, table, order=sql.SQL("order by b.name")).as_string(None)
            statement = statement.replace("%(names)s", "$1").replace("%(published)s", "$2::text[]")
            manager.entrypoint(table)(partial(write, pool, statement, table, follower))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.shutdown.set)
        await manager.run(batch_size=consumers, max_concurrent_tasks=2 * consumers)
    print(json.dumps(ended), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
