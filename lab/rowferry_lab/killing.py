"""Kills a worker in the middle of a batch, while a migration runs in another process."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import psycopg
from rich.console import Console

from rowferry.db.connection import Connection, connect
from rowferry_lab.queries import statement

LOOK_EVERY_SECONDS = 0.1
NOT_YET = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, psycopg.errors.DeadlockDetected)
"""What the view says while the schema is made at the beginning of the migration."""


@contextmanager
def killing_a_worker(console: Console, migration: str, *, is_wanted: bool) -> Generator[None]:
    """Kill one worker of a migration during the block, once it has done a part of a batch, and say so."""
    is_over = Event()
    killer = Thread(target=_kill_one, args=(console, migration, is_over), name="killer", daemon=True)
    if is_wanted:
        killer.start()
    try:
        yield
    finally:
        is_over.set()
    if is_wanted:
        killer.join(5)


def _kill_one(console: Console, migration: str, is_over: Event) -> None:
    with connect("demo", autocommit=True) as connection:
        while not is_over.wait(LOOK_EVERY_SECONDS):
            victim = _find_victim(connection, migration)
            if victim is not None:
                pid, batch_id = victim
                os.kill(pid, signal.SIGKILL)
                if console.is_terminal:
                    console.file.write("\r\x1b[2K")  # the progress bar, which is drawn again below
                console.print(f"[yellow]⚡ kill -9 {pid}: a worker dies in the middle of batch {batch_id}[/]")
                return


def _find_victim(connection: Connection, migration: str) -> tuple[int, int] | None:
    """Return the process and the batch of a worker that is in the middle of one; None: there is none yet."""
    row = None
    with suppress(*NOT_YET):
        row = connection.execute(statement("busy_worker"), {"migration": migration}).fetchone()
    return None if row is None else (row["pid"], row["batch_id"])
