"""A slot: one thread with one connection that claims and runs one batch after the other until told to stop."""

import logging
import time
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg

from rowferry.batch import Batch, Verdict
from rowferry.db.connection import Connection, connect, translate
from rowferry.db.deadlines import cut
from rowferry.errors import PoolExhausted, RowferryError, SessionEnded, UsageError, WorkLeft
from rowferry.s3.retry import jittered, retry_delay
from rowferry_worker.batch.claim import claim_batch, end_poll, is_finished
from rowferry_worker.batch.run import ClaimedBatch
from rowferry_worker.batch.sources import updates_table
from rowferry_worker.claim_turns import LOOK_UP_SECONDS
from rowferry_worker.monitoring import metrics
from rowferry_worker.queues import find_queue
from rowferry_worker.state import WorkerState

if TYPE_CHECKING:
    from rowferry_worker.slots import Slots

_log = logging.getLogger(__name__)

MIN_POLLING_INTERVAL = timedelta(seconds=0.1)
MAX_POLLING_INTERVAL = timedelta(seconds=5)
"""How often an idle process looks for work: a claim costs PostgreSQL about a millisecond of CPU."""
MAX_POLLING_INTERVAL_OF_A_COMMAND = timedelta(seconds=1)
"""The same for a worker that ends with its work, or with the command that has started it: somebody waits for it."""
MAX_OUTAGE_WAIT = timedelta(seconds=30)
CANCEL_TIMEOUT = timedelta(seconds=2)
NOT_NEEDED_AFTER = timedelta(seconds=10)
"""A slot that has waited so long for its turn to claim ends."""
NO_CONNECTION_PAUSE = timedelta(minutes=1)
"""How long the process makes do without another slot when there was no connection for one."""


class Slot:
    """Holds one connection; `run` is the body of its thread."""

    def __init__(self, state: WorkerState, others: "Slots") -> None:
        """Connect when a batch is wanted."""
        self._state = state
        self._others = others
        self._connection: Connection | None = None
        self._claimed: ClaimedBatch | None = None
        self._claim_seconds = 0.0
        """Of the last claim that found a batch."""
        self._outages = 0
        self._ended_sessions = 0
        """Sessions that were ended in the middle of a batch since the last one that was not."""
        self._is_counted = True

    def run(self) -> None:
        """Claim and run batches; survive every outage of PostgreSQL; end when stopping, or when not needed any more."""
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
            if self._is_counted:
                self._others.note_end(self)

    def _run_next_batch(self) -> bool:
        """Claim and run one batch. Return False when this slot is not needed, or no work is left to wait for."""
        state = self._state
        if self._others.are_too_many() and self._may_end():
            return False
        if not state.turns.take(NOT_NEEDED_AFTER, unless=state.stopping.is_set):
            return state.stopping.is_set() or not self._may_end()
        try:
            batch = self._claim()
        finally:
            state.turns.give()
        if batch is None or self._connection is None:
            return False
        try:
            self._others.start_if_wanted()
            self._claimed = ClaimedBatch(state, self._connection, batch, find_queue(batch.queue_name))
            self._claimed.steps.add("claim", self._claim_seconds)
            self._claimed.run()
            self._ended_sessions = 0
        finally:
            state.scheduler.claimed_entries.forget(batch.id)
            state.moving.pop(batch.id, None)
            state.turns.note_end()
        return True

    def _claim(self) -> Batch | None:
        """Claim a batch as soon as one is wanted and there is one; None when stopping, or when no work is left."""
        state, interval = self._state, MIN_POLLING_INTERVAL
        is_awaited = state.options.until_empty or state.options.end_when_unusable
        migrations = list(state.options.migrations) or None
        longest = MAX_POLLING_INTERVAL_OF_A_COMMAND if is_awaited else MAX_POLLING_INTERVAL
        while not state.stopping.is_set():
            state.watchdog.begin_turn()
            if not state.wait_until_wanted(LOOK_UP_SECONDS):
                continue
            connection = self._connect()
            began = time.monotonic()
            with metrics.claim_seconds.time():
                batch = claim_batch(connection, state.queues, migrations, state.passed_over(), state.lines)
            if batch is not None:
                self._note_claimed(batch)
                self._claim_seconds = time.monotonic() - began
                return batch
            is_last = state.options.until_empty
            if is_last and is_finished(connection, state.queues, migrations, state.backoff.unusable()):
                end_poll(connection)
                return None
            end_poll(connection)
            has_changed = state.turns.wait_for_end(state.backoff.shorten(jittered(interval)), state.stopping.is_set)
            interval = MIN_POLLING_INTERVAL if has_changed else min(interval * 2, longest)
        return None

    def _note_claimed(self, batch: Batch) -> None:
        """Count the batch in before another slot claims."""
        self._state.scheduler.claimed_entries.note(batch.id, batch.entry_count)
        if find_queue(batch.queue_name).spec.updates_rows and updates_table(batch.payload):
            self._state.moving[batch.id] = batch

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
            ledger = self._state.ledger
            ledger.flush()  # first record the loss of a batch, while none is claimed
            pooled = ledger.is_pooled  # each of its transactions begins with the settings of a session
            connection = connect(f"worker {self._state.worker_id}", autocommit=not pooled, bounded=True)
            try:
                ledger.keep()
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            if self._outages:
                self._others.note_connected()
            self._outages = 0
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _may_end(self, pause: timedelta | None = None) -> bool:
        self._is_counted = not self._others.may_end(self, pause=pause)
        return not self._is_counted

    def _recover(self, error: RowferryError | psycopg.Error) -> bool:
        """Wait until PostgreSQL may be available again. Return False if other slots go on; raise what is no outage.

        So a process that has lost all its connections tries with one of them; where it gets none for a batch, it leaves
        the ledger's to others meanwhile.
        """
        known = translate(error) if isinstance(error, psycopg.Error) else error
        if not known.retryable:
            raise known from error
        self._outages += 1
        self._ended_sessions += isinstance(known, SessionEnded)
        wait = retry_delay(
            max(self._outages, self._ended_sessions), base=timedelta(seconds=0.5), longest=MAX_OUTAGE_WAIT
        )
        if isinstance(known, PoolExhausted):
            remedy = "its pool needs one for each slot and one more for each worker process, apart from other clients'"
            _log.warning("PgBouncer's pool is too small", extra={"error": f"{known}: {remedy}"})
            pause = NO_CONNECTION_PAUSE
        else:
            fields = {"error": str(known), "seconds": round(wait.total_seconds(), 1)}
            _log.warning("database unavailable, retrying", extra=fields)
            pause = NO_CONNECTION_PAUSE if self._connection is None else wait
        has_none = self._connection is None
        self._disconnect()
        if self._may_end(jittered(pause)):
            return False
        if has_none:
            self._state.ledger.give_way(str(known))
        began = time.monotonic()
        self._state.stopping.wait(wait.total_seconds())
        if self._claimed is not None:
            waited = time.monotonic() - began  # less where the worker is told to stop
            metrics.step_seconds.labels(*self._claimed.work, "held").inc(waited)
        return True
