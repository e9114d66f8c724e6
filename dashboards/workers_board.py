"""The dashboard *Workers*: which host or process is sick, and what S3 and PostgreSQL say. It reads Prometheus."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from colours import OUTCOMES, SIDES, STEPS
from frame import annotate_alerts, annotate_prom, link, prom_variable, runbook, start_board
from kit import DASHED, Look, Threshold, fixed, prom, prom_now, show_curves, show_stat
from promql import FAILED, HERE, QUEUE, WORK, cpu, gauge, percentile, percentiles, rate
from sources import PROMETHEUS
from tables import show_hosts
from workers_details import add_details

QUEUES = 'query_result(sort(max by (queue) (rowferry_queue_position{migration=~"$migration"})))'
"""The queues in the order of their chain."""
MIGRATION = "/d/rowferry-migration?${__url_time_range}&${prometheus:queryparam}"


def build_workers_board() -> Dashboard:
    """Return the dashboard."""
    board = start_board("Rowferry: Workers", "rowferry-workers", PROMETHEUS)
    instances = 'label_values(rowferry_build_info{host=~"$host"}, instance)'
    for variable in (
        prom_variable("migration", "Migration", "label_values(rowferry_queue_entries, migration)"),
        prom_variable("queue", "Queue", QUEUES, "first", '/queue="([^"]+)"/'),
        prom_variable("host", "Host", "label_values(rowferry_build_info, host)"),
        prom_variable("instance", "Instance", instances),
    ):
        board = board.with_variable(variable)
    paused = 'max by (migration) (rowferry_migration_paused{migration=~"$migration"}) == 1'
    lost = "max by (host) (rowferry_lost_workers) > max by (host) (rowferry_lost_workers offset 1m)"
    board = board.annotation(annotate_prom("Paused", paused, "yellow", "{{migration}} paused"))
    board = board.annotation(annotate_prom("Lost workers", lost, "orange", "{{host}} lost a process"))
    board = board.annotation(annotate_alerts())
    board = board.link(link("Migration", MIGRATION)).link(link("Runbook", runbook()))
    for section in (_add_now, _add_throughput, _add_requests, _add_database, add_details):
        board = section(board)
    return board


def _add_now(board: Dashboard) -> Dashboard:
    def look(title: str, description: str, unit: str, decimals: int, none: str, *steps: Threshold) -> Look:
        return Look(title, description, 4, 4, unit, decimals, none, steps=steps)

    entries, requests = rate("rowferry_entries_total", "queue", WORK), rate("rowferry_requests_total", "", HERE)
    failed = f"{rate('rowferry_entries_total', 'queue', f'{WORK},{FAILED}')} / ({entries} > 0)"
    throttled = f"{rate('rowferry_throttled_requests_total', '', HERE)} / ({requests} > 0)"
    live = 'sum(max by (host) (rowferry_live_workers{host=~"$host"}))'
    shares: tuple[Threshold, ...] = ((None, "green"), (0.01, "orange"), (0.05, "red"))
    stats = (
        (
            look("Processes", "Live worker processes.", "locale", 0, "none", (None, "red"), (1, "green")),
            prom_now(live),
        ),
        (
            look("Entries/s", "All outcomes, by queue.", "locale", 0, "0", (None, "green")),
            prom(("{{queue}}", entries)),
        ),
        (
            look("Failed", "Share of entries, by queue.", "percentunit", 1, "0 %", *shares),
            prom_now(failed, "{{queue}}"),
        ),
        (
            look("Throttled", "Share of requests that the servers throttled.", "percentunit", 1, "0 %", *shares),
            prom_now(throttled),
        ),
        (
            look("S3 p95", "95 % of the requests take less; both sides.", "s", 2, "no request", (None, "text")),
            prom(("p95", percentile(0.95, "rowferry_request_seconds", "", HERE))),
        ),
        (
            look(
                "Busiest process",
                "CPU of the process that uses the most; it cannot use more than one core.",
                "percentunit",
                0,
                "no process",
                (None, "green"),
                (0.95, "red"),
            ),
            prom_now(f"max({cpu(HERE)})"),
        ),
    )
    for shown, answer in stats:
        board = board.with_panel(show_stat(shown, answer, sparkline=shown.title in {"Entries/s", "S3 p95"}))
    return board.with_panel(show_hosts(HERE, 7, link="/d/rowferry-workers?${__url_time_range}&var-host=${__value.raw}"))


def _add_throughput(board: Dashboard) -> Dashboard:
    by_host = Look("Entries a second by host", "All outcomes. One that lies below the others is sick.", 16, 9)
    by_outcome = Look(
        "Entries a second by outcome", "Missing, conflict and failed need an operator.", 8, 9, colours=OUTCOMES
    )
    hosts = prom(("{{host}} {{queue}}", rate("rowferry_entries_total", "host, queue", WORK)))
    outcomes = prom(("{{outcome}} {{queue}}", rate("rowferry_entries_total", "outcome, queue", WORK)))
    return board.with_panel(show_curves(by_host, hosts, legend=("mean", "lastNotNull"))).with_panel(
        show_curves(by_outcome, outcomes, stacked=True)
    )


def _add_requests(board: Dashboard) -> Dashboard:
    latency = Look(
        "S3 requests by side", "p50 and p95 of a request. Each retry counts separately.", 8, unit="s", none="no request"
    )
    faults = Look(
        "S3 faults a second by side and result",
        "Without ok, not_found and precondition_failed, which are no faults.",
        8,
        unit="reqps",
        none="no fault",
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
    return (
        board.with_row(Row("S3"))
        .with_panel(sides)
        .with_panel(show_curves(faults, prom(("{{side}} {{result}}", asked))))
        .with_panel(show_curves(limits, in_flight).override_by_name("limit", DASHED))
    )


def _add_database(board: Dashboard) -> Dashboard:
    steps = Look(
        "A batch's time by step",
        "Seconds that all slots spend in each step, per second, by queue. Held: waiting for pace, pause or outage.",
        8,
        unit="s",
        colours=STEPS,
        none="no batch yet",
    )
    claims = Look(
        "Claims: how long they take",
        "p95. Above 10 ms: an old transaction holds VACUUM back.",
        8,
        unit="s",
        none="no claim",
    )
    updates = Look(
        "Row updates of a batch",
        "Above a second, check locks of the application, triggers, and the index on the id.",
        8,
        unit="s",
        none="no update",
    )
    spent = rate("rowferry_step_seconds_total", "step, queue", QUEUE)
    return (
        board.with_row(Row("PostgreSQL"))
        .with_panel(show_curves(steps, prom(("{{step}} {{queue}}", spent)), stacked=True))
        .with_panel(show_curves(claims, prom(("p95", percentile(0.95, "rowferry_claim_seconds", "", HERE)))))
        .with_panel(show_curves(updates, prom(*percentiles("rowferry_row_update_seconds", QUEUE))))
    )
