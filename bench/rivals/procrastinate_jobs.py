"""procrastinate with jobs that do nothing: `install`, `fill JOBS`, `work CONCURRENCY`; see bench/benches/rivals.py.

One worker is one process: `wait=False` ends it when the queue is empty, and nothing is listened for meanwhile.
"""

import asyncio
import logging
import os
import sys

import psycopg
from procrastinate import App, PsycopgConnector

from bench.starting_gate import Run, wait_for_start

done = 0


def make_app() -> App:
    logging.getLogger("procrastinate").setLevel(logging.ERROR)  # It would rather not be made in a main module.
    app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"]))

    @app.task(name="nothing")
    async def nothing() -> None:
        global done  # noqa: PLW0603 - one count a process
        done += 1

    return app


async def main(command: str, number: int = 0) -> None:
    app = make_app()
    async with app.open_async():
        match command:
            case "install":
                await app.schema_manager.apply_schema_async()
            case "fill":
                execute("truncate procrastinate_jobs cascade")
                await app.tasks["nothing"].batch_defer_async(*[{}] * number)
                execute("vacuum analyze procrastinate_jobs")
            case "work":
                run = Run(await asyncio.to_thread(wait_for_start))
                await app.run_worker_async(wait=False, concurrency=number, listen_notify=False)
                run.tell(done)


def execute(statement: str) -> None:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(statement.encode())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
