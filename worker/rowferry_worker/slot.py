"""A slot: one thread with one connection that works on one batch after the other until it is told to stop."""

import logging
import time
from contextlib import suppress
from datetime import timedelta

import psycopg

from rowferry.batch import Attempt, Batch, Judgement, Verdict, count_outcomes
from rowferry.db.connection import Connection, connect, translate
from rowferry.db.deadlines import cut
from rowferry.errors import MigrationFault, ObjectError, PoolExhausted, RowferryError, UsageError, WorkLeft
from rowferry.logs import log_fields
from rowferry_worker.batch.claim import begin_attempt, claim_batch
from rowferry_worker.batch.context import Released, Work
from rowferry_worker.batch.crash_policy import choose_wait, count_strikes, describe_wait
from rowferry_worker.batch.run import Processed, process_batch
from rowferry_worker.batch.verdict import write_failure
from rowferry_worker.migration import Route
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.heartbeat import BEAT_EVERY
from rowferry_worker.monitoring.tracing import trace_batch
from rowferry_worker.objects.retry import jittered, retry_delay
from rowferry_worker.pausing import note_fault
from rowferry_worker.remainder import is_empty
from rowferry_worker.state import Shared

_log = logging.getLogger(__name__)

SHORTEST_REST = timedelta(seconds=0.1)
LONGEST_REST = timedelta(seconds=5)
"""An idle slot looks for work this often: a claim costs some 0.1 ms."""
LONGEST_OUTAGE_REST = timedelta(seconds=30)
CANCEL_WITHIN = timedelta(seconds=2)
PARKED_FOR = timedelta(minutes=1)
"""How long a slot stays away for which PgBouncer's pool has no room."""


class Slot:
    """Holds one connection; `run` is the body of its thread."""

    def __init__(self, shared: Shared) -> None:
        """Connect when it runs."""
        self._shared = shared
        self._connection: Connection | None = None
        self._outages = 0
        self._rest = SHORTEST_REST
        self._in_hand: Attempt | None = None

    def abandon(self) -> None:
        """Give back what is in hand while its thread waits for PostgreSQL: the process ends in a moment.

        The server ends what it still does for it, so that the ledger can be told.
        """
        attempt, connection = self._in_hand, self._connection
        if attempt is None or connection is None:
            return
        self._shared.ledger.owe("end_attempt", attempt.id, str(Verdict.RELEASED), "the worker was told to stop")
        _log.warning("batch given back", extra={"attempt_id": attempt.id, "verdict": str(Verdict.RELEASED)})
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=CANCEL_WITHIN.total_seconds())
        cut(connection)

    def run(self) -> None:
        """Claim and process batches; outlive every outage of PostgreSQL; end when stopping, or when none is left."""
        try:
            while not self._shared.stopping.is_set():
                self._shared.pulse.begin_turn()
                try:
                    if not self._take_turn():
                        break
                except (RowferryError, psycopg.Error) as error:
                    known = translate(error) if isinstance(error, psycopg.Error) else error
                    if not known.retryable:
                        raise known from error
                    if isinstance(known, PoolExhausted) and self._makes_room(known):
                        if self._shared.until_empty:
                            break
                        self._park()
                    else:
                        self._survive(known)
        except (UsageError, WorkLeft) as reason:
            self._shared.stop_for(reason)
        except Exception as fault:  # noqa: BLE001 - a thread's end; the process must hear of it
            _log.exception("the worker has a fault of its own and stops")
            self._shared.stop_for(fault)
        finally:
            self._shared.pulse.end()
            self._close()

    def _makes_room(self, error: PoolExhausted) -> bool:
        """Say what is wrong with the pool; return whether this slot stays away, so that the others find connections."""
        remedy = "its pool needs one for each slot and one more for each worker process, apart from other clients'"
        ends = self._shared.leave_room()
        fields = {"error": f"{error}: {remedy}", "slots": self._shared.slots}
        _log.warning("PgBouncer's pool is too small", extra=fields)
        return ends

    def _park(self) -> None:
        """Hold no connection for a while; then see whether there are enough again."""
        self._close()
        self._shared.stopping.wait(PARKED_FOR.total_seconds())
        self._shared.come_back()

    def _take_turn(self) -> bool:
        """Process one batch, or rest when none is free. Return False when there will be none any more."""
        shared, connection = self._shared, self._connect()
        with metrics.claim_seconds.time():
            batch = claim_batch(connection, shared.queues, shared.migrations, shared.backoff.passed_over())
        if batch is not None:
            self._rest = SHORTEST_REST
            self._hold(connection, batch)
            return True
        is_over = shared.until_empty and is_empty(connection, shared)
        connection.rollback()
        if is_over:
            return False
        shared.stopping.wait(shared.backoff.shorten(jittered(self._rest)).total_seconds())
        longest = timedelta(seconds=1) if shared.until_empty else LONGEST_REST
        self._rest = min(self._rest * 2, longest)
        return True

    def _hold(self, connection: Connection, batch: Batch) -> None:
        """Work on a claimed batch; whatever happens, the claim and the ledger end up agreeing."""
        route = self._find_route(connection, batch)
        if route is None:
            return
        if route.is_held_up():
            self._hold_up(connection, batch, route)
            return
        if not self._attempt(connection, batch, route, alone=batch.crashes > 0):
            self._attempt(connection, batch, route, alone=True)

    def _find_route(self, connection: Connection, batch: Batch) -> Route | None:
        """Return the batch's route, None where this worker cannot travel it: then its migration is set aside."""
        shared = self._shared
        try:
            route = shared.routes.find(connection, batch)
        except (UsageError, ObjectError) as error:
            connection.rollback()
            mistake = error if isinstance(error, UsageError) else UsageError(str(error))
            if shared.end_when_unusable:
                raise mistake from error
            shared.backoff.set_aside(batch.migration_id, mistake)
            return None
        shared.backoff.note_usable(batch.migration_id)
        return route

    def _attempt(self, connection: Connection, batch: Batch, route: Route, *, alone: bool) -> bool:
        """Begin an attempt and work; return False, with nothing done, where it shows that it must be made alone."""
        shared = self._shared
        with shared.company.joined(alone=alone, unless=shared.stopping) as joined:
            if not joined:
                connection.rollback()
                return True
            attempt = begin_attempt(shared.ledger, batch, shared.worker_id)
            if wait := choose_wait(batch, attempt):
                self._postpone(connection, batch, attempt, wait)
                return True
            if count_strikes(batch, attempt) and not shared.company.stay_alone():
                words = "it has cost workers or connections before, and waits until it is alone"
                shared.ledger.owe("end_attempt", attempt.id, "RELEASED", words)
                shared.ledger.settle()
                return False
            with log_fields(batch=batch.id, attempt=attempt.number, attempt_id=attempt.id):
                self._work(connection, batch, attempt, route)
            return True

    def _postpone(self, connection: Connection, batch: Batch, attempt: Attempt, wait: timedelta) -> None:
        """Put a batch back that may not be run yet: it is no longer first in the queue."""
        words = describe_wait(attempt)
        try:
            write_failure(connection, batch, attempt, Judgement(Verdict.RELEASED, wait, words))
            connection.commit()
        except BaseException:
            self._shared.ledger.owe("end_attempt", attempt.id, str(Verdict.RELEASED), words)
            raise
        _log.warning(
            "batch put back", extra={"batch": batch.id, "seconds": round(wait.total_seconds(), 1), "error": words}
        )
        metrics.attempts.labels(batch.queue_name, str(Verdict.RELEASED)).inc()

    def _work(self, connection: Connection, batch: Batch, attempt: Attempt, route: Route) -> None:
        """Process the batch, and say in one line what became of the attempt."""
        shared, began = self._shared, time.monotonic()
        metrics.claimed_batches.inc()
        self._in_hand = attempt
        try:
            until = began + shared.time_budget.total_seconds()
            work = Work(batch, attempt, connection, route, shared.flight, shared.give_up, until)
            with trace_batch(batch, attempt, shared.worker_id, route.plan.name) as tell:
                processed = process_batch(work)
                tell(processed)
        except (Released, UsageError) as error:
            self._give_back(connection, batch, attempt, error)
            if isinstance(error, MigrationFault):
                note_fault(shared, batch, route, error)
            elif isinstance(error, UsageError):
                raise
        except BaseException:
            shared.ledger.owe("end_attempt", attempt.id, "LOST", "the connection was lost")
            _log.warning("batch lost", extra={"verdict": "LOST"})  # Why, is told where the loss is dealt with.
            raise
        else:
            self._report(batch, attempt, processed, time.monotonic() - began)
        finally:
            self._in_hand = None
            metrics.claimed_batches.dec()

    def _give_back(self, connection: Connection, batch: Batch, attempt: Attempt, error: RowferryError) -> None:
        """Undo the attempt and close it in the ledger, if need be when the database is back."""
        self._shared.ledger.owe("end_attempt", attempt.id, "RELEASED", str(error))
        _log.info("batch given back", extra={"verdict": str(Verdict.RELEASED), "error": str(error)})
        metrics.attempts.labels(batch.queue_name, str(Verdict.RELEASED)).inc()
        connection.rollback()
        self._shared.ledger.settle()

    def _report(self, batch: Batch, attempt: Attempt, processed: Processed, seconds: float) -> None:
        """Say the verdict in one line; leave the migration alone for a while when a server of it is busy or away."""
        judgement = processed.judgement
        counts = {str(outcome): count for outcome, count in count_outcomes(processed.results).items() if count}
        fields = {"batch": batch.id, "attempt": attempt.number, "verdict": str(judgement.verdict), **counts}
        fields |= {"seconds": round(seconds, 3)} | ({"error": judgement.error} if judgement.error else {})
        level = logging.INFO if judgement.verdict is Verdict.DONE else logging.WARNING
        _log.log(level, "batch finished", extra=fields)
        metrics.attempts.labels(batch.queue_name, str(judgement.verdict)).inc()
        metrics.batch_seconds.labels(batch.queue_name).observe(seconds)
        if judgement.verdict is Verdict.RELEASED:
            self._shared.backoff.rest(batch.migration_id)
        else:
            self._shared.backoff.note_success(batch.migration_id)

    def _hold_up(self, connection: Connection, batch: Batch, route: Route) -> None:
        """Give the batch back untouched, and pass over its migration until the replicas may have caught up."""
        connection.rollback()
        max_replica_lag = route.plan.database.max_replica_lag
        _log.warning("a replica is behind; holding back", extra={"max_replica_lag": max_replica_lag})
        metrics.held_up_seconds.labels("max_replica_lag").inc(BEAT_EVERY.total_seconds())
        self._shared.backoff.hold_back(batch.migration_id, BEAT_EVERY)

    def _connect(self) -> Connection:
        if self._connection is None:
            self._shared.ledger.settle()  # A loss is on record before anything else, and no batch is held meanwhile.
            self._connection = connect(f"worker {self._shared.worker_id}", bounded=True)
            self._outages = 0
        return self._connection

    def _survive(self, error: RowferryError) -> None:
        """Drop the connection, say so, and wait before the next one."""
        self._close()
        metrics.reconnects.inc()
        _log.warning("the database is away or busy; trying again", extra={"error": str(error)})
        self._rest_from_outage()

    def _rest_from_outage(self) -> None:
        self._outages += 1
        wait = retry_delay(self._outages, base=timedelta(seconds=0.5), longest=LONGEST_OUTAGE_REST)
        self._shared.stopping.wait(wait.total_seconds())

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
