"""The dashboard *Workers*: which host or process is sick, and what S3 and PostgreSQL say. It reads Prometheus."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from colours import FAULTS, OUTCOMES, SIDES, STEP_COLOURS
from curves import DASHED, show_areas, show_curves
from frame import (
    CLUSTER as OF_CLUSTER,
)
from frame import (
    annotate_alerts,
    annotate_prom,
    board_url,
    cluster_variables,
    link,
    prom_variable,
    runbook,
    start_board,
    what_to_do,
)
from kit import BY_NAME, Look, fixed, prom
from promql import (
    CLUSTER,
    HAS_WORK_HERE,
    HERE,
    WORK,
    by_outcome,
    by_step,
    gauge,
    percentile,
    percentiles,
    rate,
)
from sources import PROMETHEUS
from workers_details import add_details
from workers_overview import add_overview

QUEUES = f'query_result(sort(max by (queue) (rowferry_queue_position{{{CLUSTER},migration=~"$migration"}})))'
"""The queues in the order of their chain."""
MIGRATION = board_url("migration", *OF_CLUSTER, "migration", "queue")
"""Where no migration is chosen, Migration shows the worst: it knows no `All`, and takes its first."""


def build_workers_board() -> Dashboard:
    """Return the dashboard."""
    board = start_board("Rowferry: Workers", "rowferry-workers", PROMETHEUS)
    instances = f'label_values(rowferry_build_info{{{CLUSTER},host=~"$host"}}, instance)'
    for variable in (
        *cluster_variables(),
        prom_variable("migration", "Migration", f"label_values(rowferry_queue_entries{{{CLUSTER}}}, migration)"),
        prom_variable("queue", "Queue", QUEUES, regex='/queue="([^"]+)"/'),
        prom_variable("host", "Host", f"label_values(rowferry_build_info{{{CLUSTER}}}, host)"),
        prom_variable("instance", "Instance", instances),
    ):
        board = board.with_variable(variable)
    paused = f'max by (migration) (rowferry_migration_paused{{{CLUSTER},migration=~"$migration"}}) == 1'
    paused += f" unless on () (sum({HAS_WORK_HERE}) > 0)"  # the pause of one of several is no one else's
    lost = f"max by (host) (rowferry_lost_workers{{{CLUSTER}}})"
    lost += f" > {lost.replace('})', '} offset 30s)')}"
    board = board.annotation(annotate_prom("Paused", paused, "yellow", "{{migration}} paused"))
    board = board.annotation(annotate_prom("Lost workers", lost, "orange", "{{host}} lost a process", "30s"))
    board = board.annotation(annotate_alerts())
    board = board.link(link("Migration", MIGRATION, keep=True)).link(link("Runbook", runbook()))
    for section in (add_overview, _add_throughput, _add_requests, _add_database, add_details):
        board = section(board)
    return board


def _add_throughput(board: Dashboard) -> Dashboard:
    by_host = Look(
        "Entries a second by host",
        "All outcomes, of the chosen migration and queues. One that lies below the others is sick.",
        16,
        9,
        decimals=0,
        none="no worker has finished an entry",
    )
    of_outcomes = Look(
        "Entries a second by outcome",
        "Missing, conflict and failed need an operator.",
        8,
        9,
        colours=OUTCOMES,
        none="no worker has finished an entry",
        links=(
            link(
                "Errors by reason",
                board_url("migration", *OF_CLUSTER, "migration", "queue", panel="Errors by reason"),
                keep=True,
            ),
        ),
    )
    hosts = prom(("{{host}}", rate("rowferry_entries_total", "host", WORK)))
    curves = show_curves(by_host, hosts, legend=("lastNotNull",)).color_scheme(BY_NAME)
    return board.with_panel(curves).with_panel(show_areas(of_outcomes, prom(*by_outcome(WORK))))


def _add_requests(board: Dashboard) -> Dashboard:
    latency = Look(
        "S3 requests by side", "p50 and p95 of a request. Each retry counts separately.", 8, unit="s", none="no request"
    )
    faults = Look(
        "S3 faults a second by side and result",
        "Without ok, not_found and precondition_failed, which are no faults. Dashed: of the legacy side.",
        8,
        unit="reqps",
        none="no fault",
        help=what_to_do("RowferryThrottled"),
    )
    limits = Look(
        "Objects in flight and their limit",
        "Of all chosen hosts. The limit (dashed) grows while throughput grows, and falls when a server throttles or "
        "slows down. In flight far below it: there is not enough work, or PostgreSQL is slow.",
        8,
        none="no worker",
        colours={"in flight": "blue", "limit": "text"},
    )
    asked = rate("rowferry_requests_total", "side, result", f'{HERE},result!~"ok|not_found|precondition_failed"')
    shares = [
        (f"{{{{side}}}} {name}", percentile(share, "rowferry_request_seconds", "side", HERE))
        for name, share in (("p50", 0.5), ("p95", 0.95))
    ]
    in_flight = prom(
        ("in flight", gauge("rowferry_objects_in_flight", "", HERE)),
        ("limit", gauge("rowferry_objects_in_flight_limit", "", HERE)),
    )
    sides = show_curves(latency, prom(*shares))
    for side, colour in SIDES.items():
        sides = sides.override_by_name(f"{side} p95", fixed(colour)).override_by_name(
            f"{side} p50", fixed(colour) + DASHED
        )
    refused = show_curves(faults, prom(("{{side}} {{result}}", asked))).override_by_regexp("/^legacy/", DASHED)
    for result, colour in FAULTS.items():
        refused = refused.override_by_regexp(f"/ {result}$/", fixed(colour))
    return (
        board.with_row(Row("S3"))
        .with_panel(sides)
        .with_panel(refused)
        .with_panel(show_curves(limits, in_flight).override_by_name("limit", DASHED))
    )


def _add_database(board: Dashboard) -> Dashboard:
    steps = Look(
        "A batch's time by step",
        "Seconds that all slots spend in each step, per second. Held: waiting for a limit of the plan, or an outage.",
        8,
        unit="s",
        colours=STEP_COLOURS,
        none="no batch yet",
    )
    claims = Look(
        "Claims: how long they take",
        "p95. Above 10 ms: an old transaction holds VACUUM back.",
        8,
        unit="s",
        none="no claim",
        links=(
            link(
                "Oldest transaction",
                board_url("migration", *OF_CLUSTER, "migration", "queue", panel="Oldest transaction"),
                keep=True,
            ),
        ),
    )
    updates = Look(
        "Row updates of a batch",
        "Above a second, check locks of the application, triggers, and the index on the id.",
        8,
        unit="s",
        none="no update",
    )
    return (
        board.with_row(Row("PostgreSQL"))
        .with_panel(show_areas(steps, prom(*by_step(WORK))))
        .with_panel(show_curves(claims, prom(("p95", percentile(0.95, "rowferry_claim_seconds", "", HERE)))))
        .with_panel(show_curves(updates, prom(*percentiles("rowferry_row_update_seconds", WORK))))
    )
