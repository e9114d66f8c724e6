"""All metrics of the exporter: the column of a view that each shows. Tests compare the dashboards with this file."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client.metrics_core import GaugeMetricFamily
from psycopg.rows import DictRow

from rowferry.batch import Outcome

MOST = 1_000
"""Of so many queues, and of so many migrations, there are metrics: of the unfinished, then of the newest."""
STATES = ("done", "needs_operator", "paused", "no_workers", "waiting", "stalled", "running")
"""The words of rowferry.migration_state."""
BY_STATUS = {"INIT": "batches_init", "DONE": "batches_done", "ERROR": "batches_error"}
BY_OUTCOME = {str(outcome): str(outcome) for outcome in Outcome}
ENDS = "at the rate of ten minutes; absent unless it runs and its queues move."
VIEWS = {
    "exporter_queues": {"migration": "migration", "queue": "queue_name"},
    "exporter_migrations": {"migration": "migration"},
    "exporter_hosts": {"host": "host"},
    "exporter_transactions": {"of": "of"},
}
"""By the query that reads a view: the labels that each of its rows has, with their columns."""
QUEUES, MIGRATIONS, HOSTS, TRANSACTIONS = VIEWS

ViewRows = Mapping[str, Sequence[DictRow]]
"""The rows of views by the query that reads them."""


class Gauge(NamedTuple):
    """One metric. A row in which its column is null has no sample."""

    query: str
    name: str
    columns: str | Mapping[str, str]
    """The column that it shows; or one for each value of `label`."""
    text: str
    label: str = ""
    """A label beside those of the view, if any; its value is that of a column of words."""


GAUGES = (
    Gauge(QUEUES, "queue_outcomes", BY_OUTCOME, "Entries of finished work by outcome.", "outcome"),
    Gauge(QUEUES, "queue_entries", "entries", "Entries in all batches."),
    Gauge(QUEUES, "queue_entries_waiting", "waiting", "Entries without an outcome yet."),
    Gauge(QUEUES, "queue_entries_in_hand", "in_hand", "Waiting entries that are settled inside open batches."),
    Gauge(QUEUES, "queue_entries_per_second", "rate_1m", "Entries a second, last minute."),
    Gauge(QUEUES, "queue_position", "position", "Its place in the order of the chain, from 1."),
    Gauge(QUEUES, "queue_batches", BY_STATUS, "Batches by status.", "status"),
    Gauge(QUEUES, "queue_claimed_batches", "claimed", "Batches claimed by live workers."),
    Gauge(QUEUES, "queue_max_claimed", "max_claimed", "How many may be claimed at once; absent without a limit."),
    Gauge(QUEUES, "queue_priority", "priority", "Queues with a higher one are claimed first."),
    Gauge(QUEUES, "queue_oldest_due_seconds", "due_seconds", "Seconds since the oldest due batch became due."),
    Gauge(QUEUES, "queue_paused", "paused", "1 while the queue or its migration is paused."),
    Gauge(QUEUES, "queue_estimated_end_timestamp_seconds", "ends_at", f"When it and those before it end, {ENDS}"),
    Gauge(MIGRATIONS, "migration_paused", "paused", "1 while a migration is paused."),
    Gauge(MIGRATIONS, "migration_paused_by_worker", "is_paused_by_worker", "1 while a worker has paused it."),
    Gauge(MIGRATIONS, "migration_done", "is_done", "1 once all batches of all queues are DONE."),
    Gauge(MIGRATIONS, "migration_estimated_end_timestamp_seconds", "ends_at", f"When its last queue ends, {ENDS}"),
    Gauge(MIGRATIONS, "migration_state", "state", "1 for the present state, else 0.", "state"),
    Gauge(MIGRATIONS, "migration_seconds_left", "seconds_left", f"Seconds until all is done, {ENDS}"),
    Gauge(MIGRATIONS, "migration_needs_operator", "needs_operator", "Entries that need an operator."),
    Gauge(MIGRATIONS, "migration_still_seconds", "still_seconds", "Seconds since anything moved that could."),
    Gauge(MIGRATIONS, "migration_state_since_timestamp_seconds", "since", "Since when it is in this state."),
    Gauge(MIGRATIONS, "migration_cause", "cause", "1 for what holds a migration; absent while nothing does.", "cause"),
    Gauge(MIGRATIONS, "migration_entries_left", "waiting", "Entries that have not left all queues of the chain."),
    Gauge(MIGRATIONS, "migration_done_ratio", "done_share", "Settled share of the queue that is behind."),
    Gauge(HOSTS, "live_workers", "live", "Live worker processes."),
    Gauge(HOSTS, "lost_workers", "lost", "Worker processes lost within the last hour."),
    Gauge(HOSTS, "host_claimed_batches", "claimed_batches", "Batches claimed by live workers."),
    Gauge(TRANSACTIONS, "database_oldest_transaction_seconds", "seconds", "Age of the oldest that holds VACUUM back."),
)


def describe(rows: ViewRows | None, seconds: float = 0) -> Iterator[GaugeMetricFamily]:
    """Yield the gauges of the rows of each view, read within so long; for None, that the database is unavailable."""
    yield GaugeMetricFamily("rowferry_exporter_up", "1 when the database answered, else 0.", float(rows is not None))
    if rows is None:
        return
    yield GaugeMetricFamily("rowferry_exporter_read_seconds", "Duration of the last reading of the queue.", seconds)
    queues = rows.get(QUEUES, ())
    left_out = queues[0]["total"] - len(queues) if queues else 0
    yield GaugeMetricFamily("rowferry_exporter_queues_left_out", f"Queues beyond the {MOST} with metrics.", left_out)
    for gauge in GAUGES:
        labels = VIEWS[gauge.query]
        own = [gauge.label] if gauge.label else []
        family = GaugeMetricFamily(f"rowferry_{gauge.name}", gauge.text, labels=[*labels, *own])
        for row in rows.get(gauge.query, ()):
            names = [row[column] for column in labels.values()]
            for value, number in _list_samples(gauge, row):
                family.add_metric([*names, value] if own else names, number)
        yield family


def _list_samples(gauge: Gauge, row: DictRow) -> Iterator[tuple[str, float]]:
    """Yield the value of the gauge's own label, if it has one, with each number of a row."""
    if not isinstance(gauge.columns, str):
        yield from ((value, row[column]) for value, column in gauge.columns.items())
        return
    shown = row[gauge.columns]
    if gauge.label:
        words = STATES if gauge.label == "state" else (shown,) if shown else ()
        yield from ((word, float(word == shown)) for word in words)
    elif shown is not None:
        yield "", float(shown)
