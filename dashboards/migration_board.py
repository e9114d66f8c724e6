"""The dashboard *Migration*: is it moving, when is it done, what fails, which host is sick, what bounds it."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from colours import OUTCOMES, STEPS, TRANSACTIONS
from frame import annotate_alerts, annotate_prom, annotate_sql, link, runbook, sql_variable, start_board
from kit import AREA, DASHED, Look, only, override, prom, same_as, show_bars, show_curves, sql, sql_over_time
from migration_details import add_details
from migration_overview import add_overview
from promql import rate
from sources import POSTGRES, PROMETHEUS
from tables import Column, show_hosts, show_table

WORKERS = "/d/rowferry-workers?${__url_time_range}&${prometheus:queryparam}&${migration:queryparam}"


def build_migration_board() -> Dashboard:
    """Return the dashboard."""
    board = start_board("Rowferry: Migration", "rowferry-migration", POSTGRES, PROMETHEUS)
    board = board.with_variable(sql_variable("migration", "Migration", "migrations"))
    board = board.with_variable(sql_variable("queue", "Queue", "queues", "first"))
    paused = 'max by (migration) (rowferry_migration_paused{migration="$migration"}) == 1'
    board = board.annotation(annotate_prom("Paused", paused, "yellow", "paused"))
    board = board.annotation(annotate_sql("Events", "events", "blue")).annotation(annotate_alerts())
    board = board.link(link("Workers", WORKERS, tooltip="The same time, host by host")).link(link("Runbook", runbook()))
    for section in (add_overview, _add_pace, _add_errors, _add_hosts, _add_bounds, add_details):
        board = section(board)
    return board


def _add_pace(board: Dashboard) -> Dashboard:
    pace = Look(
        "Entries a second",
        "By outcome, at the time when their batch finished. A stall is drawn as zeros. Of several queues: each alone.",
        16,
        colours=OUTCOMES,
        none="no batch has finished",
        links=(link("Which host", WORKERS),),
    )
    left = Look(
        "Entries left over time",
        "Dashed: at the pace of the last ten minutes. To see when this reaches zero, let the time shown end in the "
        "future, such as now+2h. Entries that were added meanwhile count from the beginning.",
        8,
        colours={"left": "blue", "at this pace": "text"},
        none="no entries yet",
    )
    curves = show_curves(pace, sql_over_time("pace"), stacked=True).interval("10s")
    for name in [outcome for outcome in OUTCOMES if outcome != "migrated"]:
        curves = curves.override_by_regexp(f"/^{name}\\b/", AREA)
    burndown = show_curves(left, same_as("Entries a second")).override_by_regexp("/^at this pace/", DASHED)
    burndown = burndown.override_by_regexp("/^left/", [override("custom.fillOpacity", 25)])
    return board.with_panel(curves.with_transformation(only(OUTCOMES))).with_panel(
        burndown.with_transformation(only(["left", "at this pace"]))
    )


def _add_errors(board: Dashboard) -> Dashboard:
    errors = Look(
        "Errors by reason",
        "Why batches are in ERROR. Mend the cause first, then type the last column: a click on it shows it in full. "
        "Migrated entries stay migrated, and no object is copied twice.",
        18,
        none="nothing needs an operator",
    )
    outcomes = Look("Outcomes", "All finished entries of the queue.", 6, colours=OUTCOMES, none="no entries yet")
    words = {name: (name, colour) for name, colour in OUTCOMES.items()}
    table = show_table(
        errors,
        sql("errors"),
        Column("queue", width=80),
        Column("outcome", words=words, cell="color-background", width=85),
        Column("reason", whole=True),
        Column("entries", width=75),
        Column("batches", width=75),
        Column("last", "dateTimeFromNow", 110),
        Column("for example", whole=True),
        Column("first", whole=True),
        Column("then type this", whole=True, width=330),
    )
    bars = show_bars(outcomes, same_as("State")).with_transformation(only(["queue", *OUTCOMES]))
    return board.with_panel(table).with_panel(bars)


def _add_hosts(board: Dashboard) -> Dashboard:
    return board.with_panel(show_hosts("", 6, link=f"{WORKERS}&var-host=${{__value.raw}}"))


def _add_bounds(board: Dashboard) -> Dashboard:
    steps = Look(
        "What bounds it: a batch's time by step",
        "Seconds that all slots spend in each step, per second, by queue. Mostly perform: S3 or its limits. "
        "Mostly claim, read, update or commit: PostgreSQL. Held: paced by the plan, paused, or an outage.",
        10,
        unit="s",
        colours=STEPS,
        none="no batch yet",
        links=(link("Workers", WORKERS),),
    )
    oldest = Look(
        "Oldest transaction",
        "It keeps VACUUM from its work, and claims get slower. Others: end it, if it lasts longer than minutes.",
        7,
        unit="s",
        colours=TRANSACTIONS,
        none="no long transaction that can be seen",
    )
    dead = Look(
        "Dead rows",
        "Rows that VACUUM has not removed, of the queue and of the tables of the entries. They rise and fall; one that "
        "only rises is held back by the oldest transaction.",
        7,
        none="not known",
    )
    spent = rate("rowferry_step_seconds_total", "step, queue", 'queue=~"$queue"')
    transactions = "max by (of) (rowferry_database_oldest_transaction_seconds)"
    return (
        board.with_panel(show_curves(steps, prom(("{{step}} {{queue}}", spent)), stacked=True))
        .with_panel(show_curves(oldest, prom(("{{of}}", transactions))))
        .with_panel(show_curves(dead, prom(("{{table}}", "max by (table) (rowferry_table_dead_rows)"))))
    )
