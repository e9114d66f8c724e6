"""The steps after which a `rowferry worker` can be made to kill itself.

Nothing in rowferry knows of it: the functions of the steps are wrapped here, from outside.
"""

import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from rowferry.batch import Entry, Performed
from rowferry_worker import slot
from rowferry_worker.attempts import AttemptRecorder
from rowferry_worker.batch import process, run
from rowferry_worker.batch.context import BatchContext, Perform, Queue
from rowferry_worker.migration import MigrationContext

MID_REQUESTS = 3
"""So many S3 requests are answered when a worker dies in the middle of its copies."""


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


def die_after_reading() -> None:
    die_after(process, "read_source")


def die_between_requests() -> None:
    """Kill the process when S3 has answered the first few requests of a batch."""
    send = MigrationContext.send
    answered: list[str] = []

    async def doomed(self: MigrationContext, request: Any) -> Any:
        response = await send(self, request)
        answered.append(request.key)
        if len(answered) == MID_REQUESTS:
            die()
        return response

    MigrationContext.send = doomed


def wrap_perform(around: Callable[[Perform, BatchContext, Sequence[Entry]], Performed]) -> None:
    """Call `around` in the place of each queue's perform."""
    find = slot.find_queue

    def wrapped(name: str) -> Queue:
        queue = find(name)
        return Queue(queue.spec, lambda context, entries: around(queue.perform, context, entries))

    slot.find_queue = wrapped  # pyright: ignore[reportAttributeAccessIssue]


def die_after_a_statement() -> None:
    """Kill the process after the first statement that a perform has executed."""

    def doomed(perform: Perform, context: BatchContext, entries: Sequence[Entry]) -> Performed:
        die_after(psycopg.Connection, "execute")
        die_after(psycopg.Cursor, "execute")
        die_after(psycopg.Cursor, "executemany")
        return perform(context, entries)

    wrap_perform(doomed)


def die_after_performing() -> None:
    def doomed(perform: Perform, context: BatchContext, entries: Sequence[Entry]) -> Performed:
        perform(context, entries)
        die()
        raise AssertionError

    wrap_perform(doomed)


def die_of_an_entry(poison: str) -> None:
    """Kill the process as soon as a perform is given the poisonous entry."""

    def doomed(perform: Perform, context: BatchContext, entries: Sequence[Entry]) -> Performed:
        if any(entry.id == poison for entry in entries):
            die()
        return perform(context, entries)

    wrap_perform(doomed)


STEPS: dict[str, Callable[[], None]] = {
    "after the claim": lambda: die_after(slot, "claim_batch", lambda batch: batch is not None),
    "after the ledger's line": lambda: die_after(AttemptRecorder, "begin"),
    "after the read": die_after_reading,
    "between requests": die_between_requests,
    "after a statement": die_after_a_statement,
    "after the work": die_after_performing,
    "before COMMIT": lambda: die_after(run, "write_result"),
    "in COMMIT": die_in_commit,
    "after COMMIT": lambda: die_after(run, "process_batch"),
}
