"""`python -m torture.crash_injector STEP …`: a `rowferry worker` that kills itself right after a named step of a batch.

Nothing in rowferry knows of it: the functions of the steps are wrapped here, from outside.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import psycopg

from rowferry_cli import main
from rowferry_queues.migrate import perform as migrate
from rowferry_worker import slot
from rowferry_worker.attempts import AttemptRecorder
from rowferry_worker.batch import run
from rowferry_worker.batch.row_update import RowUpdate

MID_COPY = 3
"""So many objects are copied when a worker dies in the middle of it."""


def die() -> None:
    """End as `kill -9` ends a process."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_after(module: Any, function: str, when: Callable[[Any], bool] = lambda _: True) -> None:
    """Kill the process once a function of a module has returned what `when` waits for."""
    original = getattr(module, function)

    def doomed(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named)
        if when(result):
            die()
        return result

    setattr(module, function, doomed)


def die_in_the_middle_of_copying() -> None:
    """Kill the process when it has copied MID_COPY objects."""
    copy_object = migrate.copy_object
    copied: list[str] = []

    async def doomed(s3: Any, options: Any, old: str, new: str) -> Any:
        result = await copy_object(s3, options, old, new)
        copied.append(old)
        if len(copied) == MID_COPY:
            die()
        return result

    migrate.copy_object = doomed


def die_in_commit() -> None:
    """Kill the process when it has sent COMMIT on the batch and not yet read the answer."""
    write = run.write_result

    def doomed_commit(connection: psycopg.Connection[Any]) -> None:
        connection.pgconn.send_query(b"COMMIT")
        while connection.pgconn.flush():
            pass
        die()

    def doomed(connection: Any, *arguments: Any) -> None:
        write(connection, *arguments)
        psycopg.Connection.commit = doomed_commit  # pyright: ignore[reportAttributeAccessIssue]

    run.write_result = doomed


STEPS: dict[str, Callable[[], None]] = {
    "after-claim": lambda: die_after(slot, "claim_batch", lambda batch: batch is not None),
    "after-attempt": lambda: die_after(AttemptRecorder, "begin"),
    "mid-copy": die_in_the_middle_of_copying,
    "after-copy": lambda: die_after(migrate, "copy_objects"),
    "in-savepoint": lambda: die_after(RowUpdate, "_execute"),
    "before-commit": lambda: die_after(run, "_perform_isolated"),
    "in-commit": die_in_commit,
    "after-commit": lambda: die_after(run, "process_batch"),
}

if __name__ == "__main__":
    STEPS[sys.argv[1]]()
    sys.argv[:2] = ["rowferry", "worker", "--processes=1"]
    sys.exit(main())
