"""Kills a worker in the middle of a batch, while a migration runs in another process."""

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Event, Thread

import psycopg
from rich.console import Console

from rowferry.db.connection import Connection, connect
from rowferry_lab.queries import statement

LOOK_EVERY_SECONDS = 0.05
LATENCY = timedelta(milliseconds=250)
"""Of each response while workers copy: without it, they would be done before anyone sees anything."""
SLOW_SECONDS = 6
"""How long after the kill: the others go on meanwhile, and what the dead worker leaves is done quickly."""
NOT_YET = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, psycopg.errors.DeadlockDetected)
"""What the view says while the schema is made at the beginning of the migration."""


@contextmanager
def killing_a_worker(
    console: Console, migration: str, set_latency: Callable[[timedelta], None], *, is_wanted: bool
) -> Generator[None]:
    """Kill one worker of a migration during the block, once it has done a part of a batch, and say so.

    `set_latency` is that of the S3 server: while workers copy, until some seconds after the kill, it is LATENCY.
    """
    is_over = Event()
    killer = Thread(target=_kill_one, args=(console, migration, set_latency, is_over), name="killer", daemon=True)
    if is_wanted:
        killer.start()
    try:
        yield
    finally:
        is_over.set()
    if is_wanted:
        killer.join(5)


def _kill_one(console: Console, migration: str, set_latency: Callable[[timedelta], None], is_over: Event) -> None:
    is_at_work = False
    with connect("demo", autocommit=True) as connection:
        while not is_over.wait(LOOK_EVERY_SECONDS):
            if not is_at_work and (is_at_work := _is_at_work(connection, migration)):
                set_latency(LATENCY)
            victim = _find_victim(connection, migration)
            if victim is not None:
                pid, batch_id = victim
                os.kill(pid, signal.SIGKILL)
                if console.is_terminal:
                    console.file.write("\r\x1b[2K")  # the progress bar, which is drawn again below
                console.print(f"[yellow]⚡ kill -9 {pid}: a worker dies in the middle of batch {batch_id}[/]")
                is_over.wait(SLOW_SECONDS)
                set_latency(timedelta(0))
                return


def _is_at_work(connection: Connection, migration: str) -> bool:
    """Return whether a worker has begun with a batch."""
    with suppress(*NOT_YET):
        (row,) = connection.execute(statement("is_at_work"), {"migration": migration})
        return row["is_at_work"]
    return False


def _find_victim(connection: Connection, migration: str) -> tuple[int, int] | None:
    """Return the process and the batch of a worker that is in the middle of one; None: there is none yet."""
    row = None
    with suppress(*NOT_YET):
        row = connection.execute(statement("busy_worker"), {"migration": migration}).fetchone()
    return None if row is None else (row["pid"], row["batch_id"])
