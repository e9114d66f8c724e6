"""The life of a claimed batch: attempt, entries, copies, rows, verdict, COMMIT; or it is deferred, released or lost."""

import logging
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

import psycopg
from psycopg.types.json import Jsonb

from rowferry.batch import Attempt, Batch, Judgement, Outcome, Verdict
from rowferry.db.connection import Connection, summarise, translate
from rowferry.errors import (
    DatabaseBusy,
    DatabaseUnavailable,
    MigrationFault,
    ObjectError,
    QueueUnusable,
    RowferryError,
    SessionEnded,
    UsageError,
    VerdictRefused,
)
from rowferry.logs import log_fields
from rowferry.s3.retry import retry_delay
from rowferry_worker.backoff import pause_after_faults
from rowferry_worker.batch.context import BatchContext, BatchReleased, Queue
from rowferry_worker.batch.crash_policy import choose_wait, count_strikes, describe_wait
from rowferry_worker.batch.process import BatchResult, process
from rowferry_worker.batch.sources import list_sides
from rowferry_worker.batch.verdict import judge_failure, write_failure, write_result
from rowferry_worker.batch.writes import savepoint
from rowferry_worker.migration import MigrationContext
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.heartbeat import HEARTBEAT_INTERVAL
from rowferry_worker.monitoring.steps import StepClock
from rowferry_worker.state import WorkerState

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ClaimedBatch:
    """A batch whose row the connection's transaction holds locked: that lock is the lease."""

    state: WorkerState
    connection: Connection
    batch: Batch
    queue: Queue
    attempt: Attempt | None = None
    """Set while the batch is being processed."""
    steps: StepClock = field(default_factory=StepClock)
    work: tuple[str, str] = (metrics.OTHERS, metrics.OTHERS)
    """Migration and queue, as metrics name them, once the migration is found."""

    def run(self) -> None:
        """Process the batch, unless its migration must wait; the claim and the ledger end up agreeing."""
        migration = self._find_migration()
        if migration is None:
            return
        self.work = metrics.name_work(migration.name, self.batch.queue_name)
        if migration.is_away():  # since a moment ago: the next claim passes it over
            self.connection.rollback()
        elif migration.is_held_up():
            self._hold_back(migration)
        else:
            try:
                alone = self.batch.crashes > 0
                while not self._try(migration, alone=alone):
                    alone = True
            finally:
                self.steps.report(self.work)

    def _find_migration(self) -> MigrationContext | None:
        """Return the batch's migration; None, with it or its queue set aside, where this worker cannot use it."""
        state, batch = self.state, self.batch
        try:
            if batch.fault is not None:
                raise batch.fault
            sides = self.queue.spec.sides | list_sides(batch.payload)
            migration = state.migration_contexts.find(self.connection, batch, sides, self.queue.spec)
        except (UsageError, ObjectError) as error:
            self.connection.rollback()
            unusable = error if isinstance(error, UsageError) else UsageError(str(error))
            if state.options.end_when_unusable:
                raise unusable from error
            queue = batch.queue_name if isinstance(error, QueueUnusable) else None
            if state.backoff.set_aside(batch.migration_id, unusable, queue):
                self._tell_usable(queue, str(unusable))
            return None
        except (RowferryError, psycopg.Error):
            raise
        except Exception as error:  # noqa: BLE001 - what a payload says must not end the worker
            self._fail(error)
            return None
        if state.backoff.troubles:
            for forgotten in state.backoff.note_usable(batch.migration_id, batch.queue_name):
                self._tell_usable(forgotten, None)
        return migration

    def _tell_usable(self, queue: str | None, error: str | None) -> None:
        """Tell operators why this worker cannot work on the migration, or on this queue of it; None: it can."""
        ledger = self.state.ledger
        key = f"{self.batch.migration_id}{f' {queue}' if queue else ''}"
        arguments = ledger.worker_id, Jsonb({"unusable": {key: error}})
        with suppress(UsageError):  # the database's encoding may lack what a server has said
            ledger.call("update_worker", *arguments, if_lost=("update_worker", arguments))

    def _hold_back(self, migration: MigrationContext) -> None:
        """Put the batch back unchanged, and skip its migration until the replicas may have caught up."""
        self.connection.rollback()
        fields = {"max_replica_lag": migration.plan.database.max_replica_lag}
        _log.warning("a replica is behind, holding back", extra=fields)
        metrics.limit_wait_seconds.labels("max_replica_lag").inc(HEARTBEAT_INTERVAL.total_seconds())
        metrics.step_seconds.labels(*self.work, "held").inc(HEARTBEAT_INTERVAL.total_seconds())
        self.state.backoff.hold_back(self.batch.migration_id, HEARTBEAT_INTERVAL)

    def _try(self, migration: MigrationContext, *, alone: bool) -> bool:
        """Make one attempt. Return False, with nothing done, when it turns out that it must begin anew, alone."""
        state, batch, asked = self.state, self.batch, time.monotonic()
        with state.batch_lock.hold(alone=alone, unless=state.stopping) as acquired:
            self.steps.add("held", time.monotonic() - asked)
            if not acquired:
                self.connection.rollback()
                return True
            with self.steps.step("claim"):
                attempt = state.attempts.begin(batch)
            if state.attempts.note_ended(attempt.silent_workers):
                return self._begin_anew(
                    attempt, "its previous worker has ended: it is run as one that has crashed a worker"
                )
            if wait := choose_wait(batch, attempt):
                self._defer(attempt, wait)
                return True
            if count_strikes(batch, attempt) and not state.batch_lock.keep_alone():
                return self._begin_anew(
                    attempt,
                    "it has crashed workers or lost connections before, and waits to run alone in its process",
                )
            with log_fields(batch=batch.id, attempt=attempt.number, attempt_id=attempt.id):
                self._process(attempt, migration)
            return True

    def _begin_anew(self, attempt: Attempt, reason: str) -> Literal[False]:
        """Close an attempt that has done nothing; return False."""
        self.state.ledger.enqueue("end_attempt", attempt.id, "RELEASED", reason)
        self.state.ledger.flush()
        return False

    def _process(self, attempt: Attempt, migration: MigrationContext) -> None:
        """Process the batch, and log in one line how the attempt ended: finished, released or lost."""
        state, batch, began = self.state, self.batch, time.monotonic()
        self.attempt = attempt
        try:
            deadline = began + state.options.time_budget.total_seconds()
            context = BatchContext(
                self.queue,
                batch,
                attempt,
                self.connection,
                migration,
                state.scheduler,
                state.give_up,
                deadline,
                steps=self.steps,
                ledger=state.ledger,
            )
            state.in_hand[attempt.id] = context.progress
            result = process_batch(context)
        except MigrationFault as error:
            migration.forget_entries()
            self._end_with_fault(attempt, migration, error)
        except (BatchReleased, UsageError) as error:
            self._release(attempt, error)
            if isinstance(error, UsageError):
                raise
        except SessionEnded as error:  # whatever ended it, the batch did not: nothing is held against it
            state.ledger.enqueue("end_attempt", attempt.id, "RELEASED", str(error))
            _log.warning("batch released", extra={"verdict": str(Verdict.RELEASED), "error": str(error)})
            metrics.attempts.labels(*self.work, str(Verdict.RELEASED)).inc()
            raise
        except BaseException:
            state.ledger.enqueue("end_attempt", attempt.id, "LOST", "the connection was lost")
            _log.warning("batch lost", extra={"verdict": "LOST"})  # the reason is logged where the loss is handled
            raise
        else:
            self._finish(attempt, result, migration, time.monotonic() - began)
        finally:
            self.attempt = None
            state.in_hand.pop(attempt.id, None)

    def _defer(self, attempt: Attempt, wait: timedelta) -> None:
        """Put a batch back that must not run yet: it is no longer first in the queue."""
        reason = describe_wait(attempt)
        self._end(attempt, Judgement(Verdict.RELEASED, wait, reason))
        fields = {"batch": self.batch.id, "seconds": round(wait.total_seconds(), 1), "error": reason}
        _log.warning("batch deferred", extra=fields)

    def _fail(self, error: Exception) -> None:
        """Make an attempt at a batch that cannot even be understood, and hold the error against it."""
        attempt = self.state.attempts.begin(self.batch)
        judgement = judge_failure(error, attempt.number, self.batch.max_attempts)
        self._end(attempt, judgement)
        fields = {"batch": self.batch.id, "attempt": attempt.number, "verdict": str(judgement.verdict)}
        _log.warning("batch failed as a whole", extra=fields | {"error": judgement.error}, exc_info=error)

    def _end_with_fault(self, attempt: Attempt, migration: MigrationContext, fault: MigrationFault) -> None:
        """Put the batch back behind the others: a fault of a side or a table is not its own.

        It is where others have succeeded since the batch first met it; then the attempt counts.
        """
        batch, (is_own, waiting, others_run) = self.batch, self._judge_fault(attempt, fault)
        if is_own:
            is_last = attempt.number >= batch.max_attempts
            verdict, wait = (Verdict.ERROR, timedelta(0)) if is_last else (Verdict.RETRY, retry_delay(attempt.number))
        else:
            verdict, wait = Verdict.RELEASED, timedelta(0)
        self._end(attempt, Judgement(verdict, wait, str(fault)))
        _log.info(f"batch {'failed' if is_own else 'released'}", extra={"verdict": str(verdict), "error": str(fault)})
        if not is_own:
            backoff, ledger = self.state.backoff, self.state.ledger
            name = migration.name
            pause_after_faults(backoff, ledger, batch, fault, name=name, waiting=waiting, others_run=others_run)

    def _judge_fault(self, attempt: Attempt, fault: MigrationFault) -> tuple[bool, int, bool]:
        """Return whether a fault is the batch's own, how many batches wait, and whether others are on their way."""
        batch, ledger = self.batch, self.state.ledger
        due_for = self.state.backoff.due_for(batch.migration_id)
        try:
            (row,) = ledger.call("judge_fault", batch.id, batch.requeues, str(fault), due_for)
        except (DatabaseBusy, UsageError):  # as the encoding of the database may lack what a server has said
            return False, 0, False
        except BaseException:
            ledger.enqueue("end_attempt", attempt.id, str(Verdict.RELEASED), str(fault))
            raise
        return bool(row["is_own"]), row["waiting"] or 0, bool(row["others_run"])

    def _end(self, attempt: Attempt, judgement: Judgement) -> None:
        """Write the verdict of an attempt that has no results, and commit it with the claim."""
        try:
            write_failure(self.connection, self.batch, attempt, judgement)
            self.connection.commit()
        except BaseException:
            self.state.ledger.enqueue("end_attempt", attempt.id, str(Verdict.RELEASED), judgement.error)
            raise
        metrics.attempts.labels(*self.work, str(judgement.verdict)).inc()

    def _release(self, attempt: Attempt, error: RowferryError) -> None:
        """Undo the attempt and close it in the ledger, if need be when the database is back."""
        self.state.ledger.enqueue("end_attempt", attempt.id, "RELEASED", str(error))
        _log.info("batch released", extra={"verdict": str(Verdict.RELEASED), "error": str(error)})
        metrics.attempts.labels(*self.work, str(Verdict.RELEASED)).inc()
        self.connection.rollback()
        self.state.ledger.flush()

    def _finish(self, attempt: Attempt, result: BatchResult, migration: MigrationContext, seconds: float) -> None:
        """Log the committed verdict; skip the migration for a while when one of its servers is busy or unavailable.

        A server that was found to be away needs no such wait: its detector says when it is back.
        """
        batch, judgement = self.batch, result.judgement
        found = Counter([entry.outcome for entry in result.results])
        counts = {str(outcome): count for outcome in Outcome if (count := found[outcome])}
        fields = {"batch": batch.id, "attempt": attempt.number, "verdict": str(judgement.verdict), **counts}
        fields |= {"seconds": round(seconds, 3)} | ({"error": judgement.error} if judgement.error else {})
        level = logging.INFO if judgement.verdict is Verdict.DONE else logging.WARNING
        _log.log(level, "batch finished", extra=fields)
        metrics.attempts.labels(*self.work, str(judgement.verdict)).inc()
        metrics.batch_seconds.labels(*self.work).observe(seconds)
        for fact in migration.list_news():
            self.state.ledger.call("record_fact", migration.name, fact, True, None)
        if migration.is_away():
            return
        if judgement.verdict is Verdict.RELEASED and result.is_outage:
            self.state.backoff.note_outage(batch.migration_id)
        elif self.state.backoff.troubles:
            self.state.backoff.note_success(batch.migration_id)


def process_batch(context: BatchContext) -> BatchResult:
    """Perform a claimed batch and commit its rows and its verdict together.

    Raises BatchReleased when the worker gives the batch up, MigrationFault when a side or the table is at fault,
    DatabaseUnavailable when the connection is lost: the caller then rolls back, and the batch is unchanged.
    """
    result = _perform_isolated(context)
    try:
        with context.steps.step("commit"):
            context.connection.commit()
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"PostgreSQL did not commit the batch: {summarise(error)}.") from error
    counts = Counter([entry.outcome for entry in result.results])
    for outcome in Outcome:
        if outcome.settled or result.judgement.verdict is Verdict.ERROR:
            metrics.entries.labels(*context.work, str(outcome)).inc(counts[outcome])
    if context.queue.spec.writes_objects:
        size_bytes = sum([entry.size_bytes for entry in result.results])
        metrics.object_bytes.labels(*context.work).inc(size_bytes)
    return result


def _perform_isolated(context: BatchContext) -> BatchResult:
    """Perform the batch and write its verdict under a SAVEPOINT; an error undoes both, but not the claim.

    If PostgreSQL refuses even the verdict on that error, the batch is lost, which is bounded as well.
    """
    connection, batch, attempt = context.connection, context.batch, context.attempt
    try:
        with savepoint(connection, "work"):
            result = process(context)
            with context.steps.step("commit"):
                write_result(connection, batch, attempt, result.judgement, result.results)
            return result
    except (BatchReleased, DatabaseUnavailable, MigrationFault):
        raise
    except Exception as error:
        known = translate(error) if isinstance(error, psycopg.Error) else error
        if isinstance(known, DatabaseUnavailable):
            raise known from error
        _log.warning("batch failed as a whole", extra={"batch": batch.id, "error": str(known)}, exc_info=error)
        result = BatchResult(judge_failure(known, attempt.number, batch.max_attempts))
    try:
        write_result(connection, batch, attempt, result.judgement, ())
    except VerdictRefused as error:
        raise DatabaseUnavailable(str(error)) from error
    return result
