"""Cuts the time that a queue worked into intervals of a round length. Pure."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from rowferry_cli.report.facts import AttemptFacts, BatchFacts, Span

MOST_INTERVALS = 120
"""Bars of a chart: each is three pixels wide on a telephone."""

STEPS = [
    timedelta(seconds=seconds)
    for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400)
]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def choose_step(duration: timedelta) -> timedelta:
    """Return the shortest round length of which at most MOST_INTERVALS - 1 cover a duration; above days, whole days."""
    for step in STEPS:
        if duration / step <= MOST_INTERVALS - 1:
            return step
    return timedelta(days=math.ceil(duration / timedelta(days=MOST_INTERVALS - 1)))


def _widen(found: dict[str, tuple[datetime, datetime]], facts: BatchFacts | AttemptFacts) -> None:
    began_at, ended_at = min(facts.began_at or facts.ended_at, facts.ended_at), facts.ended_at
    before = found.get(facts.queue, (began_at, ended_at))
    found[facts.queue] = min(before[0], began_at), max(before[1], ended_at)


def cut_span(queue: str, began_at: datetime, ended_at: datetime) -> Span:
    """Return intervals that begin at a round time (UTC) at or before `began_at` and hold `ended_at`."""
    step = choose_step(ended_at - began_at)
    begins_at = EPOCH + (began_at - EPOCH) // step * step
    return Span(queue=queue, begins_at=begins_at, step=step, count=(ended_at - begins_at) // step + 1)


def find_spans(batches: Iterable[BatchFacts], attempts: Iterable[AttemptFacts] = ()) -> dict[str, Span]:
    """Return the span of each queue that has finished batches: from the first start to the last end of any attempt."""
    found: dict[str, tuple[datetime, datetime]] = {}
    for facts in batches:
        _widen(found, facts)
    for facts in attempts:
        if facts.queue in found:
            _widen(found, facts)
    return {queue: cut_span(queue, *ends) for queue, ends in found.items()}
