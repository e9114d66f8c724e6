"""The alerts of Prometheus; `write_alerts.py` writes them. docs/runbook.md explains each.

Prometheus may scrape the exporters of several databases: every rule keeps `instance`, the exporter, so that the workers
of one database do not hide that another has none. Rules about hosts keep `cluster`, the label of a database's targets:
two exporters of one database count its workers once.
"""

from dataclasses import dataclass
from typing import Literal

from promql import HAS_WORK

SERVER_AWAY = 'unless on (instance, migration) (rowferry_migration_cause{cause="server_away"} == 1)'
IS_DEFERRED = f'(min_over_time(rowferry_migration_state{{state="waiting"}}[9m]) == 1) {SERVER_AWAY}'
"""No batch has been due for longer than any retry waits: somebody has moved `run_after`. Not where workers only put
batches back, since a server is away."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert; `summary` has `VALUE` where the value of the expression belongs, or `VALUE | FUNCTION`."""

    name: str
    severity: Literal["critical", "warning", "info"]
    lasts: str
    """How long the condition holds before it fires, as Prometheus writes durations."""
    expr: str
    summary: str
    panel: str
    """The panel that shows it, as `BOARD: TITLE`."""


ALERTS = (
    Alert(
        "RowferryNoProgress",
        "critical",
        "10m",
        '(sum by (instance, migration) (rowferry_queue_batches{status="INIT"} '
        "unless on (instance, migration, queue) (rowferry_queue_paused == 1)) > 0) "
        "unless on (instance, migration) (sum by (instance, migration) (rowferry_queue_entries_per_second) > 0) "
        "unless on (instance, migration) (sum by (instance, migration) "
        '(changes(rowferry_queue_batches{status="DONE"}[2m])) > 0) '
        "unless on (instance, migration) (rowferry_migration_paused == 1) "
        'unless on (instance, migration) (rowferry_migration_state{state=~"done|needs_operator|no_workers"} == 1) '
        f"unless on (instance, migration) (rowferry_migration_still_seconds < 120 {SERVER_AWAY}) "
        f"unless on (instance, migration) ({IS_DEFERRED})",
        "{{ $labels.migration }}: {{ VALUE }} batches are waiting and none has finished for ten minutes",
        "migration: What bounds it: a batch's time by step",
    ),
    Alert(
        "RowferryPausedByWorker",
        "critical",
        "1m",
        "rowferry_migration_paused_by_worker == 1",
        "{{ $labels.migration }}: a worker has paused it, because it cannot go on",
        "migration: All migrations",
    ),
    Alert(
        "RowferryNoWorkers",
        "critical",
        "2m",
        'sum by (instance, migration) (rowferry_queue_batches{status="INIT"}) '
        'and on (instance, migration) (rowferry_migration_state{state="no_workers"} == 1)',
        "{{ $labels.migration }}: {{ VALUE }} batches are waiting and no live worker serves them",
        "migration: Hosts",
    ),
    Alert(
        "RowferryQueueStarved",
        "warning",
        "15m",
        "rowferry_queue_oldest_due_seconds > 900 "
        "unless on (instance, migration, queue) (rowferry_queue_claimed_batches > 0) "
        "unless on (instance, migration, queue) (rowferry_queue_entries_per_second > 0) "
        "unless on (instance, migration, queue) (rowferry_queue_paused == 1) "
        "and on (instance, migration, queue) (rowferry_queue_priority >= on (instance) group_left () "
        "max by (instance) (rowferry_queue_priority and on (instance, migration, queue) "
        "(rowferry_queue_claimed_batches > 0)))",
        "{{ $labels.migration }}, {{ $labels.queue }}: its oldest batch has been due for "
        "{{ VALUE | humanizeDuration }}, and workers claim only from other queues",
        "migration: Queues of the migration",
    ),
    Alert(
        "RowferryErrorShare",
        "warning",
        "5m",
        "migration_queue:rowferry_error_share:ratio > 0.01",
        "{{ $labels.migration }}, {{ $labels.queue }}: {{ VALUE | humanizePercentage }} of the finished entries failed",
        "migration: Errors by reason",
    ),
    Alert(
        "RowferryNeedsOperator",
        "warning",
        "5m",
        "rowferry_migration_needs_operator "
        'and on (instance, migration) (rowferry_migration_state{state="needs_operator"} == 1)',
        "{{ $labels.migration }}: all else is done; {{ VALUE }} entries, or batches without any, need an operator",
        "migration: Errors by reason",
    ),
    Alert(
        "RowferryWorkerLost",
        "warning",
        "2m",
        "((rowferry_lost_workers > 0 and on (instance) (sum by (instance) (rowferry_live_workers) "
        "< max_over_time(sum by (instance) (rowferry_live_workers)[1h:1m]))) or rowferry_lost_workers > 2) "
        f"and on (instance) (sum by (instance) ({HAS_WORK} == 1) > 0)",
        "{{ $labels.host }}: {{ VALUE }} worker processes were lost within the last hour",
        "workers: Hosts",
    ),
    Alert(
        "RowferryThrottled",
        "warning",
        "10m",
        "host_side:rowferry_throttled_share:ratio5m > 0.05",
        "{{ $labels.host }}: {{ VALUE | humanizePercentage }} of the requests to the {{ $labels.side }} side were "
        "throttled",
        "workers: S3 faults a second by side and result",
    ),
    Alert(
        "RowferryOldTransaction",
        "warning",
        "5m",
        "rowferry_database_oldest_transaction_seconds > 3600 "
        'and on (instance) (sum by (instance) (rowferry_migration_state{state=~"running|stalled"}) > 0)',
        "A transaction of {{ $labels.of }} has been open for {{ VALUE | humanizeDuration }} and holds VACUUM back",
        "migration: Oldest transaction",
    ),
    Alert(
        "RowferryBlind",
        "warning",
        "5m",
        'rowferry_exporter_up == 0 or up{job="rowferry-exporter"} == 0',
        "{{ $labels.instance }} ({{ $labels.job }}) cannot be read",
        "migration: All migrations",
    ),
    Alert(
        "RowferryHostUnseen",
        "warning",
        "5m",
        "(max by (cluster, host) (rowferry_live_workers) > 0) unless on (cluster, host) rowferry_build_info "
        "and on (cluster, host) last_over_time(rowferry_build_info[6h])",
        "{{ $labels.host }}: {{ VALUE }} workers live, and Prometheus no longer gets their metrics",
        "workers: Hosts",
    ),
    Alert(
        "RowferryExporterGone",
        "warning",
        "5m",
        'quantile_over_time(0.5, count(up{job="rowferry-exporter"})[1d:5m]) '
        '> (count(up{job="rowferry-exporter"}) or vector(0))',
        "Service discovery has lost an exporter: Prometheus used to scrape {{ VALUE }}",
        "migration: All migrations",
    ),
    Alert(
        "RowferryHostIdle",
        "warning",
        "10m",
        "(max by (cluster, host) (rowferry_live_workers) > 0) "
        "and on (cluster, host) (group by (cluster, host) (rowferry_build_info offset 30m)) "
        "unless on (cluster, host) (sum by (cluster, host) (increase(rowferry_entries_total[30m])) > 0) "
        "unless on (cluster, host) (sum by (cluster, host) "
        '(increase(rowferry_requests_total{result="ok"}[30m])) > 0) '
        "and on (cluster) (sum by (cluster) (increase(rowferry_entries_total[30m])) > 0) "
        f"and on (cluster) (sum by (cluster) ({HAS_WORK}) > 0)",
        "{{ $labels.host }}: {{ VALUE }} workers live and have finished nothing for half an hour, while other hosts do",
        "workers: Hosts",
    ),
    Alert(
        "RowferrySlow",
        "warning",
        "30m",
        "(avg_over_time(rowferry_queue_entries_per_second[30m]) > 0) "
        "and on (instance, migration, queue) (avg_over_time(rowferry_queue_entries_per_second[30m]) "
        "< 0.1 * avg_over_time(rowferry_queue_entries_per_second[1d])) "
        "and on (instance, migration, queue) (sum by (instance, migration, queue) "
        '(rowferry_queue_batches{status="INIT"}) > 10 * rowferry_queue_claimed_batches > 0)',
        "{{ $labels.migration }}, {{ $labels.queue }}: its rate has fallen below a tenth of its day's",
        "migration: Entries a second",
    ),
    Alert(
        "RowferryWaiting",
        "warning",
        "1h",
        'sum by (instance, migration) (rowferry_queue_batches{status="INIT"}) > 0 '
        f'and on (instance, migration) (rowferry_migration_state{{state="waiting"}} == 1 {SERVER_AWAY})',
        "{{ $labels.migration }}: {{ VALUE }} batches are left, and for an hour none has been due",
        "migration: All migrations",
    ),
    Alert(
        "RowferryPausedLong",
        "info",
        "5m",
        'sum by (instance, migration) (min_over_time(rowferry_migration_state{state="paused"}[1d])) == 1 '
        'and on (instance, migration) (rowferry_migration_state{state="paused"} offset 1d == 1) '
        "unless on (instance, migration) (rowferry_migration_paused_by_worker == 1)",
        "{{ $labels.migration }}: a person paused it more than a day ago",
        "migration: All migrations",
    ),
)
