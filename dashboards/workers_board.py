"""The dashboard *Workers*: throughput, latency, throttling, limits, claims, row updates, CPU. It reads Prometheus."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync

from kit import Look, prom_curves, prom_stat
from sources import prom_variable

HERE = 'host=~"$host",instance=~"$instance"'
"""The workers that the variables select."""
QUEUE = {"queue": "$queue"}
WORK = {"migration": "$migration", **QUEUE}
"""Labels of what belongs to a queue: entries are never added up over queues, which work on the same ones."""
QUEUES = 'query_result(sort(max by (queue) (rowferry_queue_position{migration=~"$migration"})))'
"""The queues in the order of their chain."""


def rate(metric: str, by: str = "", **labels: str) -> str:
    """Return how fast a counter of the chosen workers grows, summed by labels."""
    chosen = ",".join([HERE, *(f'{name}=~"{value}"' for name, value in labels.items())])
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{{{chosen}}}[$__rate_interval]))"


def gauge(metric: str, by: str = "", **labels: str) -> str:
    """Return the sum of a gauge of the chosen workers."""
    chosen = ",".join([HERE, *(f'{name}=~"{value}"' for name, value in labels.items())])
    return f"sum{f' by ({by})' if by else ''} ({metric}{{{chosen}}})"


def of_queues(metric: str) -> str:
    """Return a gauge of the exporter for each queue of the chosen migrations."""
    return f'max by (migration, queue) ({metric}{{migration=~"$migration"}})'


def percentile(share: float, histogram: str, by: str = "", **labels: str) -> str:
    """Return a percentile of a histogram of the chosen workers, by labels."""
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', ', '.join(filter(None, ['le', by])), **labels)})"


def percentiles(histogram: str) -> list[tuple[str, str]]:
    """Return the curves of the three percentiles that matter, of each chosen queue."""
    shares = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    return [(f"{name} {{{{queue}}}}", percentile(share, histogram, "queue", **QUEUE)) for name, share in shares]


def build_workers_board() -> Dashboard:
    """Return the dashboard."""
    board = Dashboard("Rowferry: Workers").uid("rowferry-workers").tags(["rowferry"]).timezone("browser")
    board = board.time("now-1h", "now").refresh("30s").tooltip(DashboardCursorSync.CROSSHAIR).editable()
    instances = 'label_values(rowferry_build_info{host=~"$host"}, instance)'
    board = board.with_variable(
        prom_variable("migration", "Migration", "label_values(rowferry_queue_entries, migration)")
    )
    board = board.with_variable(prom_variable("queue", "Queue", QUEUES, "first", '/queue="([^"]+)"/'))
    board = board.with_variable(prom_variable("host", "Host", "label_values(rowferry_build_info, host)"))
    board = board.with_variable(prom_variable("instance", "Instance", instances))
    for section in (_add_overview, _add_chain, _add_throughput, _add_requests, _add_database, _add_machines):
        board = section(board)
    return board


def _add_overview(board: Dashboard) -> Dashboard:
    def look(title: str, description: str, unit: str = "short") -> Look:
        return Look(title, description, width=4, height=4, unit=unit)

    entries = rate("rowferry_entries_total", "queue", **WORK)
    failed = rate("rowferry_entries_total", "queue", **WORK, outcome="missing|conflict|failed")
    seen = f'count(up{{job="rowferry-worker",{HERE}}} == 1)'
    asked = rate("rowferry_requests_total")
    shares = ((None, "green"), (0.01, "orange"), (0.05, "red"))
    return (
        board.with_row(Row("Now"))
        .with_panel(prom_stat(look("Workers scraped", "Worker commands that Prometheus reaches."), seen))
        .with_panel(
            prom_stat(look("Worker processes", "Live processes in the database."), "sum(rowferry_live_workers)")
        )
        .with_panel(prom_stat(look("Entries a second", "All outcomes."), entries, legend="{{queue}}"))
        .with_panel(
            prom_stat(
                look("Failed", "Share of entries.", "percentunit"),
                f"{failed} / ({entries} > 0)",
                *shares,
                legend="{{queue}}",
            )
        )
        .with_panel(
            prom_stat(
                look("Throttled", "Share of requests that the servers throttled.", "percentunit"),
                f"{rate('rowferry_throttled_requests_total')} / ({asked} > 0)",
                *shares,
            )
        )
        .with_panel(
            prom_stat(
                look("Time left", "Of all queues, at the rates of the last minute.", "dtdurations"),
                'max(rowferry_migration_estimated_end_timestamp_seconds{migration=~"$migration"}) - time()',
            )
        )
    )


def _add_chain(board: Dashboard) -> Dashboard:
    waiting = Look("Waiting by queue", "Entries without an outcome yet. They pile up before the slowest queue.")
    claimed = Look("Claimed by queue", "Batches claimed by live workers, and max_in_hand where the queue has one.")
    pace = Look("Pace by queue", "Entries a second. The lowest curve with waiting entries is the pace of the chain.")
    due = Look("Oldest due by queue", "How long the oldest due batch has been due.", unit="s")
    name = "{{migration}} {{queue}}"
    return (
        board.with_row(Row("Chain"))
        .with_panel(prom_curves(waiting, (name, of_queues("rowferry_queue_entries_waiting"))))
        .with_panel(
            prom_curves(
                claimed,
                (name, of_queues("rowferry_queue_claimed_batches")),
                (f"at most {name}", of_queues("rowferry_queue_max_in_hand")),
            )
        )
        .with_panel(prom_curves(pace, (name, of_queues("rowferry_queue_entries_per_second"))))
        .with_panel(prom_curves(due, (name, of_queues("rowferry_queue_oldest_due_seconds"))))
    )


def _add_throughput(board: Dashboard) -> Dashboard:
    by_host = Look("Entries a second by host", "All outcomes.", unit="short")
    by_outcome = Look(
        "Entries a second by outcome",
        "By queue and outcome. Missing, conflict and failed need an operator.",
        unit="short",
    )
    objects = Look("Objects copied a second", "Without objects that were kept.", unit="short")
    written = Look(
        "Bytes copied a second", "Bytes where known. A server-side copy does not report its size.", unit="Bps"
    )
    return (
        board.with_row(Row("Throughput"))
        .with_panel(prom_curves(by_host, ("{{host}} {{queue}}", rate("rowferry_entries_total", "host, queue", **WORK))))
        .with_panel(
            prom_curves(by_outcome, ("{{queue}} {{outcome}}", rate("rowferry_entries_total", "queue, outcome", **WORK)))
        )
        .with_panel(
            prom_curves(objects, ("{{host}} {{queue}}", rate("rowferry_objects_copied_total", "host, queue", **WORK)))
        )
        .with_panel(
            prom_curves(written, ("{{host}} {{queue}}", rate("rowferry_object_bytes_total", "host, queue", **WORK)))
        )
    )


def _add_requests(board: Dashboard) -> Dashboard:
    copies = Look("Work on an object", "From its first request to its last response, retries included.", unit="s")
    latency = Look("S3 requests, p95 by side", "Duration of a request. Each retry counts separately.", unit="s")
    results = Look("S3 requests a second by result", "not_found and precondition_failed are no faults.", unit="reqps")
    throttling = Look(
        "Throttled and retried requests a second",
        "Workers adapt by themselves: a few throttled requests show them where the servers' limit is.",
        unit="reqps",
    )
    limits = Look(
        "Objects in flight and their limit",
        "The limit grows while throughput grows, and falls when a server throttles or slows down.",
        unit="short",
    )
    operations = Look(
        "S3 requests a second by operation",
        "A HEAD for each copy means that the server ignores If-None-Match.",
        unit="reqps",
    )
    return (
        board.with_row(Row("S3"))
        .with_panel(prom_curves(copies, *percentiles("rowferry_object_seconds")))
        .with_panel(prom_curves(latency, ("{{side}}", percentile(0.95, "rowferry_request_seconds", "side"))))
        .with_panel(prom_curves(results, ("{{result}}", rate("rowferry_requests_total", "result"))))
        .with_panel(
            prom_curves(operations, ("{{side}} {{operation}}", rate("rowferry_requests_total", "side, operation")))
        )
        .with_panel(
            prom_curves(
                throttling,
                ("throttled {{side}}", rate("rowferry_throttled_requests_total", "side")),
                ("retried {{side}}", rate("rowferry_request_retries_total", "side")),
                ("let through {{side}} {{operation}}", gauge("rowferry_request_rate_limit", "side, operation")),
            )
        )
        .with_panel(
            prom_curves(
                limits,
                ("in flight {{host}}", gauge("rowferry_objects_in_flight", "host")),
                ("limit {{host}}", gauge("rowferry_objects_in_flight_limit", "host")),
            )
        )
    )


def _add_database(board: Dashboard) -> Dashboard:
    claims = Look(
        "Claims a second, and how long they take",
        "If the p95 is above 10 ms, look for old transactions.",
        units={"p95": "s"},
    )
    updates = Look("Row updates of a batch", "Above a second, check locks of the application and indexes.", unit="s")
    batches = Look("Batches", "From claim to COMMIT.", unit="s")
    verdicts = Look("Attempts a second by verdict", "For RETRY and ERROR, see the dashboard Migration.", unit="short")
    claimed = Look("Claimed batches", "Batches are claimed as the limit of objects in flight needs them.", unit="short")
    waits = Look(
        "Slots waiting for a limit of the plan",
        "By limit: max_rows_per_second, or max_replica_lag while a replica is behind.",
        unit="short",
    )
    lost = Look(
        "Reconnects to PostgreSQL",
        "Lost connections: PostgreSQL restarted, or the network failed.",
        unit="short",
    )
    return (
        board.with_row(Row("PostgreSQL"))
        .with_panel(
            prom_curves(
                claims,
                ("claims/s", rate("rowferry_claim_seconds_count")),
                ("p95", percentile(0.95, "rowferry_claim_seconds")),
            )
        )
        .with_panel(prom_curves(updates, *percentiles("rowferry_row_update_seconds")))
        .with_panel(prom_curves(batches, *percentiles("rowferry_batch_seconds")))
        .with_panel(
            prom_curves(verdicts, ("{{queue}} {{verdict}}", rate("rowferry_attempts_total", "queue, verdict", **QUEUE)))
        )
        .with_panel(
            prom_curves(claimed, ("{{host}} {{queue}}", gauge("rowferry_claimed_batches", "host, queue", **QUEUE)))
        )
        .with_panel(prom_curves(waits, ("{{limit}}", rate("rowferry_limit_wait_seconds_total", "limit"))))
        .with_panel(prom_curves(lost, ("{{host}}", rate("rowferry_reconnects_total", "host"))))
    )


def _add_machines(board: Dashboard) -> Dashboard:
    cpu = Look(
        "CPU by instance",
        "100 % is one core. A worker uses all cores of its host; when they are full, add a host.",
        unit="percentunit",
    )
    memory = Look("Memory by instance", "Resident memory.", unit="bytes")
    mine = {"job": "rowferry-worker"}
    return (
        board.with_row(Row("Hosts"))
        .with_panel(prom_curves(cpu, ("{{instance}}", rate("process_cpu_seconds_total", "instance", **mine))))
        .with_panel(prom_curves(memory, ("{{instance}}", gauge("process_resident_memory_bytes", "instance"))))
    )
