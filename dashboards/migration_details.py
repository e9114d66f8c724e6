"""What the dashboard *Migration* shows on request: the chain, tables and hours, batches, attempts and processes."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from colours import QUEUE_STATES, STATUSES, VERDICTS
from kit import Look, only, same_as, show_bars, show_columns, show_curves, sql, sql_over_time
from tables import BAD, Column, show_table

SECONDS = "dtdhms"
NUMBER = "none"
"""Of an id: without separators."""


def add_details(board: Dashboard) -> Dashboard:
    """Add the rows that are closed at first; what is in them is not asked before."""
    for row in (_chain(), _progress(), _batches(), _workers()):
        board = board.with_row(row)
    return board


def _chain() -> Row:
    chain = Look(
        "Chain",
        "All queues of the migration, in the order in which they hand on. The slowest is the pace of the chain: the "
        "first that takes nearly as long as all of them. Time left includes the queues before.",
        16,
        none="no queue yet",
    )
    rate = Look(
        "Entries a second by queue",
        "The lowest curve with waiting entries is the pace.",
        8,
        none="no batch has finished",
    )
    states = {state: (state, colour) for state, colour in QUEUE_STATES.items()}
    return (
        Row("Chain: several queues")
        .with_panel(
            show_table(
                chain,
                sql("chain"),
                Column("state", words=states, cell="color-text"),
                Column("oldest due", SECONDS),
                Column("time left", SECONDS),
                Column("entries/s", decimals=0),
            )
        )
        .with_panel(show_curves(rate, sql_over_time("chain_rate")).interval("1m"))
    )


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
        .with_panel(show_bars(statuses, same_as("State")).with_transformation(only(["queue", *STATUSES])))
    )


def _batches() -> Row:
    slowest = Look(
        "Slowest batches",
        "The longest last attempts of the last 50,000 batches that finished in the time shown.",
        16,
        none="no batch has finished",
    )
    attempts = Look(
        "Attempts",
        "Verdicts of the last 10,000 attempts that started in the time shown.",
        8,
        colours=VERDICTS,
        none="no attempt yet",
    )
    unsuccessful = Look(
        "Attempts that are not DONE",
        "The latest first, with the error, of all hosts: also those whose workers have ended.",
        24,
        none="all attempts are DONE",
    )
    batch = (
        Column("batch", NUMBER),
        Column("duration", SECONDS),
        Column("first id", NUMBER),
        Column("last id", NUMBER),
    )
    return (
        Row("Batches and attempts")
        .with_panel(show_table(slowest, sql("slowest_batches"), *batch))
        .with_panel(show_bars(attempts, sql("attempts")))
        .with_panel(show_table(unsuccessful, sql("unsuccessful_attempts"), *batch[:2], Column("error", whole=True)))
    )


def _workers() -> Row:
    workers = Look(
        "Workers by host",
        "As the database knows them: live processes, and processes lost within the last hour, which stopped without "
        "deregistering. Their batches can be claimed again as soon as PostgreSQL notices the end of the connection.",
        none="no worker has been seen for an hour",
    )
    claimed = Look("Claimed batches", "The batches of each worker, the oldest first.", none="no batch is claimed")
    return (
        Row("Workers, as the database knows them")
        .with_panel(
            show_table(
                workers,
                sql("workers"),
                Column("lost", steps=BAD, cell="color-background"),
                Column("last seen", "dateTimeFromNow"),
            )
        )
        .with_panel(
            show_table(
                claimed,
                sql("claimed_batches"),
                Column("claimed for", SECONDS),
                Column("batch", NUMBER),
                Column("pid", NUMBER),
            )
        )
    )
