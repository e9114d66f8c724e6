"""All metrics of the exporter. Tests compare the dashboards with this file."""

from collections.abc import Iterator, Sequence

from prometheus_client.metrics_core import GaugeMetricFamily
from psycopg.rows import DictRow

from rowferry.batch import Outcome
from rowferry_exporter.reader import MOST, ViewRows

STATES = ("done", "need_somebody", "paused", "no_workers", "waiting", "stalled", "running")
"""The words of rowferry.migration_state."""
CAUSES = (
    "errors",
    "nothing_moves",
    "no_workers",
    "skipped",
    "no_batches",
    "server_away",
    "retries",
    "deferred",
    "person",
    "worker",
    "queues",
)
"""What holds a migration, in the words of the same view. There are no others, so that there are no more time series."""
STATUSES = {"INIT": "batches_init", "DONE": "batches_done", "ERROR": "batches_error"}


def describe(reading: ViewRows | None) -> Iterator[GaugeMetricFamily]:
    """Yield the gauges of a reading; for None, only that the database is unavailable."""
    up = GaugeMetricFamily("rowferry_exporter_up", "1 when the database answered, else 0.")
    up.add_metric([], 0.0 if reading is None else 1.0)
    yield up
    if reading is None:
        return
    took = GaugeMetricFamily("rowferry_exporter_read_seconds", "Duration of the last reading of the queue.")
    took.add_metric([], reading.seconds)
    yield took
    left_out = GaugeMetricFamily("rowferry_exporter_queues_left_out", f"Queues beyond the {MOST} that have metrics.")
    left_out.add_metric([], reading.queues[0]["total"] - len(reading.queues) if reading.queues else 0)
    yield left_out
    yield from _describe_entries(reading.queues)
    yield from _describe_queues(reading.queues)
    yield from _describe_migrations(reading.migrations)
    yield from _describe_states(reading.migrations)
    yield from _describe_hosts(reading.hosts)
    yield from _describe_database(reading.transactions, reading.tables)


def _gauge(name: str, text: str, *more: str) -> GaugeMetricFamily:
    """Return a gauge by migration and queue."""
    return GaugeMetricFamily(f"rowferry_queue_{name}", text, labels=["migration", "queue", *more])


def _describe_entries(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    outcomes = _gauge("outcomes", "Entries of finished work by outcome.", "outcome")
    entries = _gauge("entries", "Entries in all batches.")
    left = _gauge("entries_waiting", "Entries without an outcome yet.")
    in_hand = _gauge("entries_in_hand", "Waiting entries that live workers have settled inside batches that are open.")
    rate = _gauge("entries_per_second", "Entries a second, last minute.")
    for row in rows:
        names = [row["migration"], row["queue_name"]]
        for outcome in Outcome:
            outcomes.add_metric([*names, str(outcome)], row[outcome])
        entries.add_metric(names, row["entries"])
        left.add_metric(names, row["waiting"])
        in_hand.add_metric(names, row["in_hand"])
        rate.add_metric(names, row["rate"])
    yield from (outcomes, entries, left, in_hand, rate)


def _describe_queues(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    position = _gauge("position", "Its place in the order of the chain, from 1.")
    batches = _gauge("batches", "Batches by status.", "status")
    claimed = _gauge("claimed_batches", "Batches claimed by live workers.")
    most = _gauge("max_in_hand", "How many may be claimed at once; absent without a limit.")
    priority = _gauge("priority", "Queues with a higher one are claimed first.")
    due = _gauge("oldest_due_seconds", "Seconds since the oldest due batch became due.")
    paused = _gauge("paused", "1 while the queue or its migration is paused.")
    end = _gauge(
        "estimated_end_timestamp_seconds",
        "When all entries of this queue and those before it are done, at the rate of ten minutes; "
        "absent unless its migration is running and they move.",
    )
    for row in rows:
        names = [row["migration"], row["queue_name"]]
        position.add_metric(names, row["position"])
        for status, column in STATUSES.items():
            batches.add_metric([*names, status], row[column])
        claimed.add_metric(names, row["claimed"])
        if row["max_in_hand"] is not None:
            most.add_metric(names, row["max_in_hand"])
        priority.add_metric(names, row["priority"])
        due.add_metric(names, row["due_seconds"])
        paused.add_metric(names, float(row["paused"]))
        if row["ends_at"] is not None:
            end.add_metric(names, row["ends_at"])
    yield from (position, batches, claimed, most, priority, due, paused, end)


def _describe_migrations(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    labels = ["migration"]
    paused = GaugeMetricFamily("rowferry_migration_paused", "1 while a migration is paused.", labels=labels)
    by_worker = GaugeMetricFamily(
        "rowferry_migration_paused_by_worker", "1 while it is paused because a worker could not go on.", labels=labels
    )
    done = GaugeMetricFamily("rowferry_migration_done", "1 once all batches of all queues are DONE.", labels=labels)
    end = GaugeMetricFamily(
        "rowferry_migration_estimated_end_timestamp_seconds",
        "When the last queue is done, at the rate of ten minutes; absent unless it runs and all its queues move.",
        labels=labels,
    )
    for row in rows:
        paused.add_metric([row["migration"]], float(row["paused"]))
        by_worker.add_metric([row["migration"]], float(row["is_paused_by_worker"]))
        done.add_metric([row["migration"]], float(row["is_done"]))
        if row["ends_at"] is not None:
            end.add_metric([row["migration"]], row["ends_at"])
    yield from (paused, by_worker, done, end)


def _describe_states(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    labels = ["migration"]
    state = GaugeMetricFamily("rowferry_migration_state", "1 for the present state, else 0.", labels=[*labels, "state"])
    left = GaugeMetricFamily(
        "rowferry_migration_seconds_left",
        "Seconds until all is done, at the rate of ten minutes; absent unless it runs and all its queues move.",
        labels=labels,
    )
    need = GaugeMetricFamily(
        "rowferry_migration_entries_in_need",
        "Entries that need an operator: missing, conflict, failed; at least 1 for each batch in ERROR.",
        labels=labels,
    )
    still = GaugeMetricFamily(
        "rowferry_migration_still_seconds",
        "Seconds since anything moved that could; absent unless a batch is due, served by a worker and not paused.",
        labels=labels,
    )
    since = GaugeMetricFamily(
        "rowferry_migration_state_since_timestamp_seconds", "Since when it is in this state.", labels=labels
    )
    cause = GaugeMetricFamily(
        "rowferry_migration_cause",
        "1 for what holds a migration, in one of the words of rowferry.migration_state; absent while nothing does.",
        labels=[*labels, "cause"],
    )
    entries = GaugeMetricFamily(
        "rowferry_migration_entries_left", "Entries that have not left all queues of the chain.", labels=labels
    )
    done = GaugeMetricFamily(
        "rowferry_migration_done_ratio",
        "The settled share, 0 to 1, of the queue that is behind the others; absent without entries.",
        labels=labels,
    )
    for row in rows:
        for word in STATES:
            state.add_metric([row["migration"], word], float(row["state"] == word))
        since.add_metric([row["migration"]], row["since"])
        if row["cause"] in CAUSES:
            cause.add_metric([row["migration"], row["cause"]], 1.0)
        entries.add_metric([row["migration"]], row["waiting"])
        if row["done_share"] is not None:
            done.add_metric([row["migration"]], row["done_share"])
        if row["seconds_left"] is not None:
            left.add_metric([row["migration"]], row["seconds_left"])
        need.add_metric([row["migration"]], row["need_somebody"])
        if row["still_seconds"] is not None:
            still.add_metric([row["migration"]], row["still_seconds"])
    yield from (state, left, need, still, since, cause, entries, done)


def _describe_database(transactions: Sequence[DictRow], tables: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    oldest = GaugeMetricFamily(
        "rowferry_database_oldest_transaction_seconds",
        "Age of the oldest transaction that holds VACUUM back, by whose it is; absent where PostgreSQL hides it.",
        labels=["of"],
    )
    for row in transactions:
        if row["seconds"] is not None:
            oldest.add_metric([row["of"]], row["seconds"])
    dead = GaugeMetricFamily("rowferry_table_dead_rows", "Rows that VACUUM has not removed yet.", labels=["table"])
    for row in tables:
        dead.add_metric([row["table_name"]], row["dead_rows"])
    yield from (oldest, dead)


def _describe_hosts(rows: Sequence[DictRow]) -> Iterator[GaugeMetricFamily]:
    live = GaugeMetricFamily("rowferry_live_workers", "Live worker processes.", labels=["host"])
    lost = GaugeMetricFamily(
        "rowferry_lost_workers",
        "Worker processes lost within the last hour.",
        labels=["host"],
    )
    held = GaugeMetricFamily("rowferry_host_claimed_batches", "Batches claimed by live workers.", labels=["host"])
    for row in rows:
        live.add_metric([row["host"]], row["live"])
        lost.add_metric([row["host"]], row["lost"])
        held.add_metric([row["host"]], row["claimed_batches"])
    yield from (live, lost, held)
