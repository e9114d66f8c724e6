"""What the dashboard *Migration* shows on request: the chain, tables and hours, batches, attempts and processes."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from colours import STATUSES, VERDICTS
from curves import show_columns, show_curves
from kit import Look, only, same_as, show_bars, sql, sql_over_time
from tables import BAD, WARN, Column, show_table

SECONDS = "s"
"""Of what may take less than a second."""
NUMBER = "none"
"""Of an id: without separators."""


def add_details(board: Dashboard) -> Dashboard:
    """Add the rows that are closed at first; what is in them is not asked before."""
    for row in (_chain(), _progress(), _batches(), _workers()):
        board = board.with_row(row)
    return board


def _chain() -> Row:
    rate = Look(
        "Entries a second by queue",
        "The lowest curve of a queue with waiting entries sets the rate of the chain.",
        24,
        none="no batch has finished",
    )
    return Row("Queues over time").with_panel(show_curves(rate, sql_over_time("chain_rate")).interval("1m"))


def _progress() -> Row:
    tables = Look("Progress by table", "Each [[entries]] of the plan.", 24, 6, none="no entries yet")
    hourly = Look(
        "Progress by hour", "Entries finished in each hour of the last day.", 16, none="no batch has finished"
    )
    statuses = Look(
        "Batches by status",
        "INIT is waiting or claimed. ERROR needs an operator.",
        8,
        colours=STATUSES,
        none="no batch yet",
    )
    return (
        Row("Tables and hours")
        .with_panel(
            show_table(
                tables,
                sql("tables"),
                Column("done", "percent", cell="gauge", most=100, decimals=1, steps=((None, "blue"),)),
                Column("failed", steps=BAD, cell="color-background"),
                Column("bytes", "bytes"),
            )
        )
        .with_panel(show_columns(hourly, sql_over_time("hourly")).interval("1h").time_from("24h"))
        .with_panel(show_bars(statuses, same_as("State")).with_transformation(only(STATUSES)))
    )


def _batches() -> Row:
    slowest = Look(
        "Slowest batches",
        "The longest last attempts of the last 50,000 batches that finished in the time shown.",
        18,
        none="no batch has finished",
    )
    attempts = Look(
        "Attempts",
        "Verdicts of the last 10,000 attempts that started in the time shown.",
        6,
        colours=VERDICTS,
        none="no attempt yet",
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
        .with_panel(show_bars(attempts, sql("attempts")))
        .with_panel(show_table(unsuccessful, sql("unsuccessful_attempts"), *batch, *failed))
    )


def _workers() -> Row:
    workers = Look(
        "Workers by host",
        "As the database knows them: live processes, and processes lost within the last hour, which stopped without "
        "deregistering. Their batches can be claimed again as soon as PostgreSQL notices the end of the connection.",
        11,
        none="no worker has been seen for an hour",
    )
    claimed = Look("Claimed batches", "The batches of each worker, the oldest first.", 13, none="no batch is claimed")
    return (
        Row("Workers, as the database knows them")
        .with_panel(
            show_table(
                workers,
                sql("workers"),
                Column("live", width=60),
                Column("lost", steps=WARN, cell="color-background", width=60),
                Column("claimed batches", width=130),
                Column("in flight, at most", width=140),
                Column("version", width=80),
                Column("last seen", "dateTimeFromNow", 140),
            )
        )
        .with_panel(
            show_table(
                claimed,
                sql("claimed_batches"),
                Column("batch", NUMBER, 70),
                Column("queue", width=80),
                Column("claimed for", SECONDS, 90, 1),
                Column("entries", width=65),
                Column("done", width=50),
                Column("attempt", width=70),
                Column("pid", NUMBER, 65),
                Column("first id", NUMBER, 85),
                Column("last id", NUMBER, 85),
            )
        )
    )
