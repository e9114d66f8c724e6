"""Step 3 of 5: hand the copies of a batch to the event loop, and wait until they have ended."""

import time
from collections.abc import Iterable
from concurrent.futures import wait
from datetime import timedelta

from rowferry.errors import Unreachable
from rowferry.http import event_loop
from rowferry_worker.batch.context import LOOK_UP_EVERY, BatchContext
from rowferry_worker.batch.side_faults import are_reachable, refuse_side_fault
from rowferry_worker.objects.scheduler import Copy, CopyRun, Ended

CANCEL_WITHIN = timedelta(seconds=3)
"""How long to wait for the aborts of a batch's multipart uploads once the worker releases it, or has lost it."""


def run_copies(context: BatchContext, copy: Copy, keys: Iterable[str]) -> dict[str, Ended]:
    """Copy the object of each key, many at once, and return how each copy ended; NotStarted past the time budget.

    Raises BatchReleased when the worker gives the batch up meanwhile, MigrationFault when a side is at fault.
    """
    ends = _wait_for(context, CopyRun(context.scheduler, copy, keys, deadline=context.deadline))
    refuse_side_fault(context.migration, ends)
    if any(isinstance(end, Unreachable) for end in ends.values()) and are_reachable(context.migration):
        return {key: _charge_attempt(end) for key, end in ends.items()}
    return ends


def _wait_for(context: BatchContext, run: CopyRun) -> dict[str, Ended]:
    """Return how the copies ended. They are cancelled when the batch is released or lost meanwhile."""
    ends, alive_at = event_loop.submit(run.run_all()), time.monotonic()
    try:
        while True:
            try:
                return ends.result(LOOK_UP_EVERY.total_seconds())
            except TimeoutError:
                alive_at = context.keep_alive(alive_at)
    except BaseException:
        # The batch's rows may name the objects by now, so nothing may be written any more.
        event_loop.call_soon(run.cancel)
        wait([ends], CANCEL_WITHIN.total_seconds())
        raise


def _charge_attempt(end: Ended) -> Ended:
    """Return the end of a copy; a broken connection costs an attempt, since the servers respond to others."""
    if isinstance(end, Unreachable):
        charged = Unreachable(end.code, "the connection broke")
        charged.costs_attempt = True
        return charged
    return end
