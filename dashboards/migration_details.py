"""What the dashboard *Migration* shows on request: the chain, tables, batches, attempts and processes."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from curves import show_curves
from kit import Look, sql, sql_over_time
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
    return Row("Tables").with_panel(
        show_table(
            tables,
            sql("tables"),
            Column("done", "percent", cell="gauge", most=100, decimals=1, steps=((None, "blue"),)),
            Column("failed", steps=BAD, cell="color-background"),
            Column("bytes", "bytes"),
        )
    )


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


def _workers() -> Row:
    workers = Look(
        "Workers by host",
        "As the database knows them: live processes, and processes lost within the last hour, which stopped without "
        "deregistering. Their batches can be claimed again as soon as PostgreSQL notices the end of the connection.",
        24,
        none="no worker has been seen for an hour",
    )
    return Row("Workers, as the database knows them").with_panel(
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
