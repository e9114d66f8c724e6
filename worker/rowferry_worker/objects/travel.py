"""Sends the journeys of a batch on their way, many at once, and brings home how each ended."""

from collections.abc import Mapping

from rowferry.errors import Unreachable
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.side_faults import refuse_side_fault
from rowferry_worker.objects.journey import Journey
from rowferry_worker.objects.scheduler import Ended


def travel(context: BatchContext, journeys: Mapping[str, Journey]) -> dict[str, Ended]:
    """Return how each journey ended, by its key; those whose turn did not come ended as Withdrawn.

    Raises BatchReleased when the worker gives the batch up meanwhile, MigrationFault when a side is at fault.
    """
    load = context.flight.launch(context.route.send, list(journeys.values()), context.route.reserve)
    context.wait_for(load)
    ends = {key: end for key, end in zip(journeys, load.ends, strict=True) if end is not None}
    refuse_side_fault(context, ends)
    if any(isinstance(end, Unreachable) for end in ends.values()) and context.route.is_reachable():
        # The servers are there: a connection that broke is this object's own misfortune, and counts.
        return {key: _blame(end) for key, end in ends.items()}
    return ends


def _blame(end: Ended) -> Ended:
    if isinstance(end, Unreachable):
        blamed = Unreachable(end.code, "the connection broke")
        blamed.costs_attempt = True
        return blamed
    return end
