"""What the dashboard *Workers* shows on request: processes and limits."""

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.models.common import GraphThresholdsStyleMode

from curves import DASHED, show_curves
from kit import Look, prom
from promql import HERE, WORK, cpu, gauge, memory, rate


def add_details(board: Dashboard) -> Dashboard:
    """Add the rows that are closed at first; what is in them is not asked before."""
    for row in (_processes(), _limits()):
        board = board.with_row(row)
    return board


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
