"""Batches that have nothing left to do, of which a rerun has many: looked over and finished many at a time.

Only what turns out to be idle is finished so. A batch that has entries to work on goes back untouched, to be claimed
alone: its rows must not stay locked while other batches copy their objects.
"""

import logging
import time
from collections.abc import Sequence
from itertools import groupby

from rowferry.batch import Attempt, Batch, Judgement, Verdict
from rowferry.database import Connection, translated_errors
from rowferry.errors import DatabaseUnavailable
from rowferry.session import answered
from rowferry_worker import metrics
from rowferry_worker.claim import begin_attempts, claim_more
from rowferry_worker.entries import find_ranges_with_work
from rowferry_worker.process import Processed
from rowferry_worker.queues import find_queue
from rowferry_worker.route import Route
from rowferry_worker.shared import Shared
from rowferry_worker.tracing import trace_batch
from rowferry_worker.verdict import release_attempt, write_idle

_log = logging.getLogger(__name__)

MOST_BATCHES = 64
"""Batches that are looked over at once, at the most."""
MOST_ENTRIES = 100_000
"""Entries that those may have had, by the first of them: they are read in one statement."""

Held = tuple[Batch, Attempt]


class Stride:
    """How many batches a slot claims at once: one, and twice as many each time as long as all of them are idle."""

    def __init__(self) -> None:
        """Begin with one."""
        self._batches = 1

    def note(self, *, idle: bool) -> None:
        """Say whether all that was claimed last had nothing left to do."""
        self._batches = min(2 * self._batches, MOST_BATCHES) if idle else 1

    def claim_more(self, connection: Connection, batch: Batch) -> list[Batch]:
        """Claim the batches behind a claimed one that may be looked over with it; mostly none."""
        most = min(self._batches, MOST_ENTRIES // max(batch.entry_count, 1))
        if most < 2 or batch.crashes or find_queue(batch.queue_name).form is None:
            return []
        return claim_more(connection, batch, most - 1)


def look_over(shared: Shared, connection: Connection, route: Route, batches: Sequence[Batch]) -> bool:
    """Finish those of the claimed batches that are idle, give the others back; return whether all were idle.

    An attempt at each is recorded first, as at any batch: it would count a crash. Raises DatabaseUnavailable when the
    connection is lost.
    """
    attempts = begin_attempts(shared.ledger, batches, shared.worker_id)
    held, began = list(zip(batches, attempts, strict=True)), time.monotonic()
    metrics.batches_in_hand.inc(len(held))
    try:
        with translated_errors():
            idle = _settle(connection, route, held)
    except Exception as error:
        is_lost = isinstance(error, DatabaseUnavailable)
        for _, attempt in held:
            shared.ledger.owe("end_attempt", attempt.id, "LOST" if is_lost else "RELEASED", str(error))
        if is_lost:
            raise
        connection.rollback()
        shared.ledger.settle()
        return False  # Whose fault it was, is found out when each is worked on alone.
    finally:
        metrics.batches_in_hand.dec(len(held))
    _report(shared, route, idle, time.monotonic() - began)
    return len(idle) == len(held)


def _settle(connection: Connection, route: Route, held: Sequence[Held]) -> list[Held]:
    """Write what becomes of each batch, commit, and return those that were idle."""
    with answered(connection):
        busy = _find_busy(connection, route, [batch for batch, _ in held])
        idle = [one for one in held if one[0].id not in busy]
        write_idle(connection, idle)
        for batch, attempt in held:
            if batch.id in busy:
                release_attempt(connection, attempt, "looked over with others; it has entries to work on")
        connection.commit()
    return idle


def _find_busy(connection: Connection, route: Route, batches: Sequence[Batch]) -> set[int]:
    """Return the ids of the batches that have entries to work on, with one statement a table."""
    form = find_queue(batches[0].queue_name).form
    assert form is not None, "Stride claims no more batches of such a queue"
    busy: set[int] = set()
    for label, group in groupby(batches, key=lambda batch: str(batch.payload["entries"])):
        ranges = {batch.id: (batch.payload["first"], batch.payload["last"]) for batch in group}
        found = find_ranges_with_work(connection, route.entries(connection, label), list(ranges.values()), form)
        busy.update(list(ranges)[number] for number in found)
    return busy


def _report(shared: Shared, route: Route, idle: Sequence[Held], seconds: float) -> None:
    """Say the verdict on all idle batches in one line."""
    if not idle:
        return
    done, queue_name = str(Verdict.DONE), idle[0][0].queue_name
    _log.info("idle batches finished", extra={"verdict": done, "batches": [batch.id for batch, _ in idle]})
    metrics.attempts.labels(queue_name, done).inc(len(idle))
    processed = Processed(Judgement(Verdict.DONE))
    for batch, attempt in idle:
        metrics.batch_seconds.labels(queue_name).observe(seconds / len(idle))
        with trace_batch(batch, attempt, shared.worker_id, route.plan.name) as tell:
            tell(processed)
