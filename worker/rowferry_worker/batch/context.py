"""What a queue gets to work on one batch."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from typing import Any, TypeVar

import psycopg

from rowferry.batch import Attempt, Batch, Entry, Performed
from rowferry.db.connection import Connection, summarise
from rowferry.db.statements import statement
from rowferry.db.timeouts import has_spoken, show_life_every
from rowferry.errors import RowferryError, SessionEnded
from rowferry.plan import QueueSettings
from rowferry.queue_spec import QueueSpec
from rowferry.s3.providers import find_provider
from rowferry_worker.claim_turns import LOOK_UP_SECONDS
from rowferry_worker.ledger import Ledger
from rowferry_worker.migration import MigrationContext
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.steps import StepClock
from rowferry_worker.multipart.large import MAX_PARTS, NO_RECORDS, LargeObjects
from rowferry_worker.multipart.records import UploadRecords
from rowferry_worker.objects.own_copies import name_bucket
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.pacing.rate_limit import NO_WAIT
from rowferry_worker.scheduling.scheduler import CopyScheduler
from rowferry_worker.state import BatchProgress

T = TypeVar("T")
ENDED_FROM_OUTSIDE = {"57P01", "25P03", "25P04"}
"""SQLSTATEs of sessions that an administrator ended, and of transactions that were idle, or lasted, for too long."""

Patch = Mapping[str, Any]
"""What is put in the place of some keys of a payload."""
Perform = Callable[["BatchContext", Sequence[Entry]], Performed]


class BatchReleased(RowferryError):
    """The worker was told to stop now: the batch is put back unchanged."""

    retryable = True
    costs_attempt = False


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue, and what a worker does with one of its batches; see rowferry_worker.queues."""

    spec: QueueSpec
    perform: Perform


@dataclass(frozen=True, slots=True)
class BatchContext:
    """A claimed batch and what a queue may use; the connection is inside the claim's transaction."""

    queue: Queue
    batch: Batch
    attempt: Attempt
    connection: Connection
    migration: MigrationContext
    scheduler: CopyScheduler
    give_up: Event
    deadline: float = math.inf
    """End of the batch's time budget, as time.monotonic() measures it."""
    steps: StepClock = field(default_factory=StepClock)
    """Where the batch's time goes."""
    progress: BatchProgress = field(default_factory=BatchProgress)
    """How many of its entries are settled so far; the process tells it once a second."""
    parallel: float = math.inf
    """How many of its objects may be in flight, below the limit of the process."""
    ledger: Ledger | None = None
    """Keeps the records of unfinished uploads; None: an upload that does not come to its end begins anew."""

    @property
    def settings(self) -> QueueSettings:
        """The plan's [queue.NAME] of the batch's queue."""
        return self.migration.read_settings(self.queue.spec)

    @property
    def work(self) -> tuple[str, str]:
        """Migration and queue, as metrics name them."""
        return metrics.name_work(self.migration.name, self.batch.queue_name)

    def object_requests(self) -> ObjectRequests:
        """Return how the batch's copies send requests."""
        return self.migration.requests(self.scheduler)

    def large_objects(self) -> LargeObjects:
        """Return what the batch's large objects share."""
        plan, records = self.migration.plan, NO_RECORDS
        if self.ledger is not None and len(plan.sides) == 2:
            legacy, production = name_bucket(plan.legacy), name_bucket(plan.production)
            records = UploadRecords(self.ledger.call, legacy, production, self.batch.id, self.attempt.id)
        room = None if self.parallel < math.inf else self.scheduler.part_room
        provider = find_provider(plan.production_side) if plan.production_side is not None else None
        max_parts = (provider and provider.max_parts) or MAX_PARTS
        return LargeObjects(records, room, self.deadline, max_parts=max_parts)

    def reserve_rows(self, rows: int) -> timedelta:
        """Take the turn of so many rows under the plan's `max_rows_per_second`; return how long to wait for it.

        PostgreSQL gives the turns, to all workers together.
        """
        bound = self.migration.plan.database.max_rows_per_second
        if bound is None or self.ledger is None or not rows:
            return NO_WAIT
        (row,) = self.ledger.call("take_row_turn", self.batch.migration_id, rows, bound)
        return row["take_row_turn"]

    def wait_for(self, future: Future[T]) -> T:
        """Return the result of a future, with the transaction open. Raises as `keep_alive`, and what it ends with."""
        alive_at = time.monotonic()
        while True:
            wait([future], LOOK_UP_SECONDS)
            if future.done():  # a TimeoutError of `result` could be its own as well
                return future.result()
            alive_at = self.keep_alive(alive_at)

    def wait(self, seconds: float) -> None:
        """Wait so long with the transaction open. Raises as `keep_alive`."""
        end, alive_at = time.monotonic() + seconds, time.monotonic()
        while (left := end - time.monotonic()) > 0 or self.give_up.is_set():
            self.give_up.wait(min(left, LOOK_UP_SECONDS))
            alive_at = self.keep_alive(alive_at)

    def keep_alive(self, alive_at: float) -> float:
        """Execute a statement every second, lest the idle transaction is ended; return when it last was.

        Raises BatchReleased when the worker gives up, SessionEnded as soon as the server has announced that it ends the
        session, the error of a connection that was lost otherwise.
        """
        if self.give_up.is_set():
            raise BatchReleased("the worker was told to stop")
        is_due = time.monotonic() - alive_at >= show_life_every().total_seconds()
        if not is_due and not has_spoken(self.connection):
            return alive_at
        try:
            self.connection.execute(statement("keep_alive"))
        except psycopg.Error as error:
            if error.sqlstate not in ENDED_FROM_OUTSIDE:
                raise
            raise SessionEnded(f"PostgreSQL ended the session while it waited for S3: {summarise(error)}.") from error
        return time.monotonic()


def find_meant(payload: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the ids that alone are meant, of those in the payload's source; None: all.

    `only`: what another queue handed on; `unsettled`: what the last attempt left.
    """
    ids = payload.get("unsettled")
    if ids is None:
        ids = payload.get("only")
    return None if ids is None else frozenset(ids)
