"""Gathers what the page of a report is made of, and the times between which a migration ran."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rowferry.batch import Outcome
from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.reports.report import Report
from rowferry_cli.report.facts import (
    AttemptFacts,
    BatchFacts,
    Event,
    Facts,
    Interval,
    MigrationFacts,
    Pass,
    QueueFacts,
    Reason,
    Retry,
    Sample,
    Span,
)

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
    count = (ended_at - begins_at) // step + 1
    return Span(queue=queue, begins_at=begins_at, step=step, count=count, began_at=began_at, ends_at=ended_at)


def find_spans(batches: Iterable[BatchFacts], attempts: Iterable[AttemptFacts] = ()) -> dict[str, Span]:
    """Return the span of each queue that has finished batches: from the first start to the last end of any attempt."""
    found: dict[str, tuple[datetime, datetime]] = {}
    for facts in batches:
        _widen(found, facts)
    for facts in attempts:
        if facts.queue in found:
            _widen(found, facts)
    return {queue: cut_span(queue, *ends) for queue, ends in found.items()}


MOST_HOSTS = 1_000
"""Rows, one a queue and host."""
MOST_REASONS = 40
MOST_SAMPLES = 5
"""Of each reason."""
MOST_RETRIES = 20
MOST_EVENTS = 200
MOST_PASSES = 20


def gather_facts(connection: Connection, report: Report) -> Facts:
    """Return the facts of a migration; the caller has read `report` in the transaction that is open: one snapshot."""
    with translated_errors():
        named = {"migration": report.migration}
        row = fetch_one(connection, statement("page_migration"), named)
        limited = {**named, "limit": MOST_HOSTS}
        batches = [BatchFacts(**one) for one in _read(connection, "page_batches", limited)]
        attempts = _read_attempts(connection, limited)
        spans = find_spans(batches, attempts)
        reasons = [
            Reason(**one) for one in _read(connection, "error_groups", {**named, "queue": None, "limit": MOST_REASONS})
        ]
        return Facts(
            report=report,
            migration=MigrationFacts(**row),
            queues=[QueueFacts(**one) for one in _read(connection, "page_queues", named)],
            batches=batches,
            attempts=attempts,
            worked=fetch_one(connection, statement("page_worked"), named)["worked"],
            spans=spans,
            intervals=_read_intervals(connection, named, spans),
            reasons=reasons,
            samples=_read_samples(connection, named, reasons),
            retries=[Retry(**one) for one in _read(connection, "page_retries", {**named, "limit": MOST_RETRIES})],
            events=[Event(**one) for one in _read(connection, "page_events", {**named, "limit": MOST_EVENTS})],
            passes=[Pass(**one) for one in _read(connection, "page_passes", {**named, "limit": MOST_PASSES})],
        )


def _read(connection: Connection, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    return connection.execute(statement(name), parameters).fetchall()


def _read_attempts(connection: Connection, limited: Mapping[str, Any]) -> list[AttemptFacts]:
    connection.execute(statement("report_settings"), {"value": "off"})
    rows = _read(connection, "page_attempts", limited)
    connection.execute(statement("report_settings"), {"value": "on"})
    return [AttemptFacts(**row) for row in rows]


def _read_intervals(connection: Connection, named: Mapping[str, Any], spans: Mapping[str, Span]) -> list[Interval]:
    parameters = {
        **named,
        "queues": list(spans),
        "begins": [span.begins_at for span in spans.values()],
        "steps": [span.step for span in spans.values()],
    }
    found: dict[tuple[str, datetime], dict[Outcome, int]] = {}
    for row in _read(connection, "page_pace", parameters) if spans else []:
        found.setdefault((row["queue"], row["began_at"]), {})[Outcome(row["outcome"])] = row["entries"]
    return [Interval(queue=queue, began_at=began_at, outcomes=one) for (queue, began_at), one in found.items()]


def _read_samples(connection: Connection, named: Mapping[str, Any], reasons: Sequence[Reason]) -> list[Sample]:
    parameters = {
        **named,
        "queues": [reason.queue_name for reason in reasons],
        "outcomes": [reason.outcome for reason in reasons],
        "reasons": [reason.reason for reason in reasons],
        "limit": MOST_SAMPLES,
    }
    return [Sample(**row) for row in _read(connection, "page_samples", parameters)] if reasons else []
