"""A slot: one thread with one connection that claims and runs one batch after the other until told to stop."""

import logging
from contextlib import suppress
from datetime import timedelta

import psycopg

from rowferry.batch import Verdict
from rowferry.db.connection import Connection, connect, translate
from rowferry.db.deadlines import cut
from rowferry.errors import PoolExhausted, RowferryError, UsageError, WorkLeft
from rowferry.s3.retry import jittered, retry_delay
from rowferry_worker.batch.claim import claim_batch, is_finished
from rowferry_worker.batch.run import ClaimedBatch
from rowferry_worker.monitoring import metrics
from rowferry_worker.queues import find_queue
from rowferry_worker.state import WorkerState

_log = logging.getLogger(__name__)

MIN_POLLING_INTERVAL = timedelta(seconds=0.1)
MAX_POLLING_INTERVAL = timedelta(seconds=5)
"""How often an idle slot looks for work: a claim costs some 0.1 ms."""
MAX_POLLING_INTERVAL_UNTIL_EMPTY = timedelta(seconds=1)
MAX_OUTAGE_WAIT = timedelta(seconds=30)
CANCEL_TIMEOUT = timedelta(seconds=2)
PARKED_FOR = timedelta(minutes=1)
"""How long a slot stays away when PgBouncer's pool has no connection for it."""


class Slot:
    """Holds one connection; `run` is the body of its thread."""

    def __init__(self, state: WorkerState) -> None:
        """Connect when it runs."""
        self._state = state
        self._connection: Connection | None = None
        self._claimed: ClaimedBatch | None = None
        self._outages = 0
        self._polling_interval = MIN_POLLING_INTERVAL

    def run(self) -> None:
        """Claim and run batches; survive every outage of PostgreSQL; end when stopping, or when no work is left."""
        state = self._state
        try:
            while not state.stopping.is_set():
                state.watchdog.begin_turn()
                try:
                    goes_on = self._run_next_batch()
                except (RowferryError, psycopg.Error) as error:
                    goes_on = self._recover(error)
                if not goes_on:
                    break
        except (UsageError, WorkLeft) as reason:
            state.stop_for(reason)
        except Exception as error:  # noqa: BLE001 - the end of a thread; the process must learn of it
            _log.exception("unexpected error, stopping worker")
            state.stop_for(error)
        finally:
            state.watchdog.remove()
            self._disconnect()

    def _run_next_batch(self) -> bool:
        """Claim and run one batch, or wait for work. Return False when no work is left to wait for."""
        state, connection = self._state, self._connect()
        with metrics.claim_seconds.time():
            batch = claim_batch(connection, state.queues, state.migrations, state.backoff.passed_over())
        if batch is None:
            return self._wait_for_work(connection)
        self._polling_interval = MIN_POLLING_INTERVAL
        self._claimed = ClaimedBatch(state, connection, batch, find_queue(batch.queue_name))
        self._claimed.run()
        return True

    def _wait_for_work(self, connection: Connection) -> bool:
        """Wait before the next look for work. Return False when none is left to wait for."""
        state = self._state
        if state.until_empty and is_finished(connection, state.queues, state.migrations, state.backoff.unusable()):
            connection.rollback()
            return False
        connection.rollback()
        state.stopping.wait(state.backoff.shorten(jittered(self._polling_interval)).total_seconds())
        longest = MAX_POLLING_INTERVAL_UNTIL_EMPTY if state.until_empty else MAX_POLLING_INTERVAL
        self._polling_interval = min(self._polling_interval * 2, longest)
        return True

    def abandon(self) -> None:
        """Release the batch of a thread that still waits for PostgreSQL, from another thread: the process ends now.

        The server is told to stop its statement, so that the ledger can be written.
        """
        connection, attempt = self._connection, self._claimed.attempt if self._claimed else None
        if attempt is None or connection is None:
            return
        self._state.ledger.enqueue("end_attempt", attempt.id, str(Verdict.RELEASED), "the worker was told to stop")
        _log.warning("batch released", extra={"attempt_id": attempt.id, "verdict": str(Verdict.RELEASED)})
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=CANCEL_TIMEOUT.total_seconds())
        cut(connection)

    def _connect(self) -> Connection:
        if self._connection is None:
            self._state.ledger.flush()  # first record the loss of a batch, while none is claimed
            self._connection = connect(f"worker {self._state.worker_id}", bounded=True)
            self._outages = 0
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _recover(self, error: RowferryError | psycopg.Error) -> bool:
        """Wait until PostgreSQL may be available again. Return False when this slot ends; raise what is no outage."""
        known = translate(error) if isinstance(error, psycopg.Error) else error
        if not known.retryable:
            raise known from error
        if isinstance(known, PoolExhausted) and self._try_park(known):
            if self._state.until_empty:
                return False
            self._disconnect()
            self._state.stopping.wait(PARKED_FOR.total_seconds())
            self._state.unpark_slot()
        else:
            self._back_off(known)
        return True

    def _try_park(self, error: PoolExhausted) -> bool:
        """Log what is wrong with the pool; return whether this slot gives up its connection to the other slots."""
        remedy = "its pool needs one for each slot and one more for each worker process, apart from other clients'"
        may_park = self._state.try_park_slot()
        fields = {"error": f"{error}: {remedy}", "slots": self._state.slots}
        _log.warning("PgBouncer's pool is too small", extra=fields)
        return may_park

    def _back_off(self, error: RowferryError) -> None:
        """Drop the connection and wait before the next one."""
        self._disconnect()
        metrics.reconnects.inc()
        self._outages += 1
        wait = retry_delay(self._outages, base=timedelta(seconds=0.5), longest=MAX_OUTAGE_WAIT).total_seconds()
        _log.warning("database unavailable, retrying", extra={"error": str(error), "seconds": round(wait, 1)})
        self._state.stopping.wait(wait)
