"""The dashboard *Migration*: is it moving, when is it done, what fails, which host is sick, what bounds it."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from colours import OUTCOMES, STEP_COLOURS, TRANSACTIONS
from curves import DASHED, show_areas, show_curves
from frame import (
    CHOSEN_OF_WORKERS,
    annotate_alerts,
    annotate_sql,
    board_url,
    cluster_variables,
    explained_by_workers,
    link,
    runbook,
    sql_variable,
    start_board,
    what_to_do,
)
from hosts import show_hosts
from kit import Look, only, override, prom, same_as, show_bars, sql, sql_over_time
from migration_overview import add_overview
from promql import CHOSEN, CLUSTER, by_share_of_step
from sources import POSTGRES, PROMETHEUS
from tables import BAD, Column, show_table

WORKERS = board_url("workers", *CHOSEN_OF_WORKERS)
SECONDS = "s"
"""Of what may take less than a second."""
NUMBER = "none"
"""Of an id: without separators."""


def build_migration_board() -> Dashboard:
    """Return the dashboard."""
    board = start_board("Rowferry: Migration", "rowferry-migration", POSTGRES, PROMETHEUS)
    board = board.with_variable(sql_variable("migration", "Migration", "migrations"))
    board = board.with_variable(sql_variable("queue", "Queue", "queues", "several"))
    for variable in cluster_variables():
        board = board.with_variable(variable)
    board = board.annotation(annotate_sql("Pauses", "pauses", "yellow"))
    board = board.annotation(annotate_sql("Requeues and lost workers", "events", "orange"))
    board = board.annotation(annotate_alerts())
    board = board.link(link("Workers", WORKERS, tooltip="The same time, host by host", keep=True)).link(
        link("Runbook", runbook())
    )
    for section in (add_overview, _add_errors, _add_pace, _add_hosts, _add_bounds, _add_details):
        board = section(board)
    return board


def _add_pace(board: Dashboard) -> Dashboard:
    pace = Look(
        "Entries a second",
        "By outcome, at the time when their batch finished. A stall is drawn as zeros. Of several queues: their work "
        "together, so that an entry counts in each.",
        12,
        colours=OUTCOMES,
        none="no batch has finished",
        links=(explained_by_workers("Entries a second by host"),),
    )
    left = Look(
        "Entries left over time",
        "Entries that have not left the chosen queues. Dashed: as Time left says, while it is running; let the time "
        "shown end in the future, such as now+2h. Entries that were added meanwhile count from the beginning.",
        7,
        colours={"left": "blue", "at this pace": "text"},
        none="no entries yet",
    )
    curves = show_areas(pace, sql_over_time("speed")).interval("10s")
    burndown = show_curves(left, same_as("Entries a second")).override_by_regexp("/^at this pace/", DASHED)
    burndown = burndown.override_by_regexp("/^left/", [override("custom.fillOpacity", 25)])
    outcomes = Look(
        "Outcomes",
        "All finished entries of the chosen queues; an entry counts in each.",
        5,
        colours=OUTCOMES,
        none="no entries yet",
    )
    bars = show_bars(outcomes, same_as("State")).with_transformation(only(OUTCOMES))
    burndown = burndown.with_transformation(only(["left", "at this pace"]))
    return board.with_panel(curves.with_transformation(only(OUTCOMES))).with_panel(burndown).with_panel(bars)


def _add_errors(board: Dashboard) -> Dashboard:
    errors = Look(
        "Errors by reason",
        "Why batches of the chosen queues are in ERROR. Fix the cause first, then type the last column. Migrated "
        "entries stay migrated, and no object is copied twice.",
        24,
        8,
        none="nothing needs an operator",
        help=what_to_do("RowferryNeedsOperator"),
    )
    words = {name: (name, colour) for name, colour in OUTCOMES.items()}
    table = show_table(
        errors,
        sql("errors"),
        Column("queue", width=80, whole=True),
        Column("outcome", words=words, cell="color-background", width=80),
        Column("reason", whole=True, width=140),
        Column("entries", width=75),
        Column("batches", width=66),
        Column("last", "dateTimeFromNow", 142),
        Column("for example", whole=True),
        Column("first", width=290, wraps=True),
        Column("then type this", width=624, wraps=True, whole=True),
    )
    return board.with_panel(table)


def _add_hosts(board: Dashboard) -> Dashboard:
    return board.with_panel(show_hosts("", 9, link=f"{WORKERS}&var-host=${{__value.raw}}"))


def _add_bounds(board: Dashboard) -> Dashboard:
    steps = Look(
        "What bounds it: a batch's time by step",
        "Share of each step in the time of all slots, of the chosen migration and queues. Mostly perform: S3 or its "
        "limits. Mostly claim, read, update or commit: PostgreSQL. Held: paced by the plan, or an outage.",
        14,
        unit="percentunit",
        decimals=0,
        colours=STEP_COLOURS,
        none="no batch yet",
        links=(link("Workers", WORKERS, keep=True),),
    )
    oldest = Look(
        "Oldest transaction",
        "It keeps VACUUM from its work, and claims get slower. Others: end it, if it lasts longer than minutes.",
        10,
        unit="s",
        colours=TRANSACTIONS,
        none="no long transaction that can be seen",
        help=what_to_do("RowferryOldTransaction"),
    )
    transactions = f"max by (of) (rowferry_database_oldest_transaction_seconds{{{CLUSTER}}})"
    share = show_areas(steps, prom(*by_share_of_step(f"{CLUSTER},{CHOSEN}"))).max(1)
    return board.with_panel(share).with_panel(show_curves(oldest, prom(("{{of}}", transactions))))


def _add_details(board: Dashboard) -> Dashboard:
    """Add the rows that are closed at first; what is in them is not asked before."""
    return board.with_row(_queues_and_tables()).with_row(_batches())


def _queues_and_tables() -> Row:
    rate = Look(
        "Entries a second by queue",
        "The lowest curve of a queue with waiting entries sets the rate of the chain.",
        24,
        none="no batch has finished",
    )
    tables = Look("Progress by table", "Each [[entries]] of the plan.", 24, 6, none="no entries yet")
    columns = (
        Column("done", "percent", cell="gauge", most=100, decimals=1, steps=((None, "blue"),)),
        Column("failed", steps=BAD, cell="color-background"),
        Column("bytes", "bytes"),
    )
    curves = show_curves(rate, sql_over_time("chain_rate")).interval("1m")
    return Row("Queues and tables").with_panel(curves).with_panel(show_table(tables, sql("tables"), *columns))


def _batches() -> Row:
    slowest = Look(
        "Slowest batches",
        "The longest last attempts of the last 50,000 batches that finished in the time shown.",
        24,
        none="no batch has finished",
    )
    unsuccessful = Look(
        "Attempts that are not DONE",
        "The latest first, with the error, of all hosts: also those whose workers have ended.",
        24,
        none="all attempts are DONE",
    )
    batch = (Column("batch", NUMBER, 80), Column("queue", width=100), Column("duration", SECONDS, 100, 1))
    slow = (
        Column("entries", width=80),
        Column("attempts", width=90),
        Column("status", width=80),
        Column("first id", NUMBER, 90),
        Column("last id", NUMBER, 90),
        Column("finished", width=195),
    )
    failed = (
        Column("started", width=195),
        Column("attempt", width=80),
        Column("verdict", width=100),
        Column("host", width=150, whole=True),
        Column("error", whole=True),
    )
    return (
        Row("Batches and attempts")
        .with_panel(show_table(slowest, sql("slowest_batches"), *batch, *slow))
        .with_panel(show_table(unsuccessful, sql("unsuccessful_attempts"), *batch, *failed))
    )
