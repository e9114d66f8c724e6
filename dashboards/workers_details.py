"""What the dashboard *Workers* shows on request: the chain, processes, and limits."""

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.models.common import GraphThresholdsStyleMode

from curves import DASHED, show_curves
from kit import Look, prom
from promql import CLUSTER, HERE, WORK, cpu, gauge, memory, rate


def add_details(board: Dashboard) -> Dashboard:
    """Add the rows that are closed at first; what is in them is not asked before."""
    for row in (_chain(), _processes(), _limits()):
        board = board.with_row(row)
    return board


def _of_queues(metric: str) -> str:
    """Return a gauge of the exporter for each queue of the chosen migrations."""
    return f'max by (migration, queue) ({metric}{{{CLUSTER},migration=~"$migration"}})'


def _chain() -> Row:
    waiting = Look(
        "Waiting by queue",
        "Entries without an outcome, less those settled inside open batches. They pile up before the slowest queue.",
    )
    left = f"{_of_queues('rowferry_queue_entries_waiting')} - {_of_queues('rowferry_queue_entries_in_hand')}"
    due = Look("Oldest due by queue", "How long the oldest due batch has been due.", unit="s", none="none is due")
    name = "{{migration}} {{queue}}"
    return (
        Row("Chain: several queues")
        .with_panel(show_curves(waiting, prom((name, left))))
        .with_panel(show_curves(due, prom((name, _of_queues("rowferry_queue_oldest_due_seconds")))))
    )


def _processes() -> Row:
    used = Look(
        "CPU by process",
        "100 % is one core, and a process cannot use more. All at the line: start more processes or hosts.",
        unit="percentunit",
        steps=((None, "transparent"), (1, "red")),
    )
    resident = Look("Memory by process", "Resident memory.", unit="bytes")
    name = "{{host}} {{process}}"
    line = common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED)
    return (
        Row("Processes")
        .with_panel(show_curves(used, prom((name, cpu(HERE))), legend=("max",)).thresholds_style(line))
        .with_panel(show_curves(resident, prom((name, memory(HERE))), legend=("max",)))
    )


def _limits() -> Row:
    written = Look(
        "Bytes copied a second",
        "Bytes where known. A server-side copy does not report its size.",
        unit="Bps",
        none="no object",
    )
    throttling = Look(
        "Throttled and retried requests a second",
        "Workers adapt by themselves: a few throttled requests show them where the servers' limit is.",
        24,
        unit="reqps",
        colours={"throttled": "orange", "retried": "yellow", "let through": "text"},
        none="no request",
    )
    throttled = prom(
        ("throttled {{side}}", rate("rowferry_throttled_requests_total", "side", HERE)),
        ("retried {{side}}", rate("rowferry_request_retries_total", "side", HERE)),
        ("let through {{side}} {{operation}}", gauge("rowferry_request_rate_limit", "side, operation", HERE)),
    )
    waits = Look(
        "Slots waiting for a limit of the plan",
        "By limit: max_rows_per_second, or max_replica_lag while a replica is behind.",
    )
    return (
        Row("Bytes and limits")
        .with_panel(show_curves(written, prom(("{{host}}", rate("rowferry_object_bytes_total", "host", WORK)))))
        .with_panel(show_curves(waits, prom(("{{limit}}", rate("rowferry_limit_wait_seconds_total", "limit", HERE)))))
        .with_panel(show_curves(throttling, throttled).override_by_regexp("/^let through/", DASHED))
    )
