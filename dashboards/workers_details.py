"""What the dashboard *Workers* shows on request: the chain, processes, and what is flat while all is well."""

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.models.common import GraphThresholdsStyleMode

from colours import VERDICTS
from curves import DASHED, show_curves
from kit import Look, prom
from promql import CLUSTER, HERE, WORK, cpu, gauge, memory, percentiles, rate


def add_details(board: Dashboard) -> Dashboard:
    """Add the rows that are closed at first; what is in them is not asked before."""
    for row in (_chain(), _processes(), _objects(), _batches()):
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
    claimed = Look(
        "Claimed by queue", "Batches claimed by live workers, and max_in_hand (dashed) where the queue has one."
    )
    pace = Look("Rate by queue", "Entries a second. The lowest curve with waiting entries sets the rate of the chain.")
    due = Look("Oldest due by queue", "How long the oldest due batch has been due.", unit="s", none="none is due")
    name = "{{migration}} {{queue}}"
    claims = prom(
        (name, _of_queues("rowferry_queue_claimed_batches")),
        (f"at most {name}", _of_queues("rowferry_queue_max_in_hand")),
    )
    return (
        Row("Chain: several queues")
        .with_panel(show_curves(waiting, prom((name, left))))
        .with_panel(show_curves(claimed, claims).override_by_regexp("/^at most/", DASHED))
        .with_panel(show_curves(pace, prom((name, _of_queues("rowferry_queue_entries_per_second")))))
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


def _objects() -> Row:
    objects = Look("Objects copied a second", "Without objects that were kept.", none="no object")
    written = Look(
        "Bytes copied a second",
        "Bytes where known. A server-side copy does not report its size.",
        unit="Bps",
        none="no object",
    )
    copies = Look(
        "Work on an object",
        "From its first request to its last response, retries included.",
        unit="s",
        none="no object",
    )
    operations = Look(
        "S3 requests a second by operation",
        "A HEAD for each copy means that the server ignores If-None-Match.",
        unit="reqps",
        none="no request",
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
    by_operation = rate("rowferry_requests_total", "side, operation", HERE)
    return (
        Row("Objects and requests")
        .with_panel(show_curves(objects, prom(("{{host}}", rate("rowferry_objects_copied_total", "host", WORK)))))
        .with_panel(show_curves(written, prom(("{{host}}", rate("rowferry_object_bytes_total", "host", WORK)))))
        .with_panel(show_curves(copies, prom(*percentiles("rowferry_object_seconds", WORK))))
        .with_panel(show_curves(operations, prom(("{{side}} {{operation}}", by_operation))))
        .with_panel(show_curves(throttling, throttled).override_by_regexp("/^let through/", DASHED))
    )


def _batches() -> Row:
    claims = Look("Claims a second", "Found or not.", none="no claim")
    batches = Look("Batches", "From claim to COMMIT.", unit="s", none="no batch")
    verdicts = Look(
        "Attempts a second by verdict",
        "For RETRY and ERROR, see the dashboard Migration.",
        colours=VERDICTS,
        none="no attempt",
    )
    claimed = Look("Claimed batches", "Batches are claimed as the limit of objects in flight needs them.")
    waits = Look(
        "Slots waiting for a limit of the plan",
        "By limit: max_rows_per_second, or max_replica_lag while a replica is behind.",
    )
    lost = Look("Reconnects to PostgreSQL", "Lost connections: PostgreSQL restarted, or the network failed.")
    by_verdict = rate("rowferry_attempts_total", "verdict", WORK)
    return (
        Row("Batches and connections")
        .with_panel(show_curves(claims, prom(("claims/s", rate("rowferry_claim_seconds_count", "", HERE)))))
        .with_panel(show_curves(batches, prom(*percentiles("rowferry_batch_seconds", WORK))))
        .with_panel(show_curves(verdicts, prom(("{{verdict}}", by_verdict))))
        .with_panel(show_curves(claimed, prom(("{{host}}", gauge("rowferry_claimed_batches", "host", WORK)))))
        .with_panel(show_curves(waits, prom(("{{limit}}", rate("rowferry_limit_wait_seconds_total", "limit", HERE)))))
        .with_panel(show_curves(lost, prom(("{{host}}", rate("rowferry_reconnects_total", "host", HERE)))))
    )
