"""Reads the facts of the page from the database: a bounded number of rows, however many batches there are."""

from collections.abc import Mapping, Sequence
from datetime import datetime
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
from rowferry_cli.report.spans import find_spans

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
