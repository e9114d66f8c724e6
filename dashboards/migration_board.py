"""The dashboard *Migration*: how far the work is, how fast, what failed and why. It asks PostgreSQL."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync

from kit import Look, sql_bars, sql_curves, sql_pie, sql_stat, sql_table, words
from sources import sql_variable

OUTCOME_COLOURS = {
    "migrated": "green",
    "kept": "blue",
    "changed": "text",
    "deleted": "purple",
    "missing": "orange",
    "conflict": "yellow",
    "failed": "red",
}

REQUEUE = """\
Fix the cause first. Then put the batches back in the queue, as a role that may
(`rowferry init --grants ROLE --for operator`):

```sql
-- all of this migration
update rowferry.batch_queue set status = 'INIT'
where status = 'ERROR' and migration_id =
    (select id from rowferry.migration where name = '${migration}');
```

For one reason only: the last column of the table beside this has the statement. A trigger resets attempts, errors and
the time of the next attempt; migrated entries stay counted, and no object is copied twice.

| outcome | what it means | what to do |
| --- | --- | --- |
| missing | no legacy object | a row without an object: restore the object, or correct the row |
| conflict | a different production object | `rowferry enqueue --on-conflict keep` or `overwrite` |
| failed | anything else | see the reason |
"""


def build_migration_board() -> Dashboard:
    """Return the dashboard."""
    board = Dashboard("Rowferry: Migration").uid("rowferry-migration").tags(["rowferry"]).timezone("browser")
    board = board.time("now-1h", "now").refresh("30s").tooltip(DashboardCursorSync.CROSSHAIR).editable()
    board = board.with_variable(sql_variable("migration", "Migration", "migrations"))
    board = board.with_variable(sql_variable("host", "Host", "hosts", many=True))
    for section in (_add_progress, _add_errors, _add_batches, _add_workers):
        board = section(board)
    return board


def _add_progress(board: Dashboard) -> Dashboard:
    now = Look(
        "Now",
        "Entries with an outcome, entries without one yet, the rate of the last minute, and when the rest is done at "
        "that rate. No time is shown while nothing moves.",
        width=20,
        height=4,
        decimals=0,
        units={"done": "percent", "entries waiting": "short", "time left": "dtdurations", "ends at": "dateTimeAsLocal"},
    )
    status = Look("Status", "Running, paused, without workers, or with nothing due now.", width=4, height=4)
    rate = Look(
        "Entries a second",
        "By outcome, at the time when their batch finished.",
        width=16,
        unit="short",
        colours={"rows updated/s": "green", "changed or deleted/s": "blue", "failed/s": "red"},
    )
    outcomes = Look("Outcomes", "All finished entries.", width=8, decimals=0, colours=OUTCOME_COLOURS)
    hourly = Look("Progress by hour", "Entries finished in each full hour.", width=16, unit="short")
    statuses = Look(
        "Batches by status",
        "INIT: waiting or claimed. ERROR: needs an operator.",
        width=8,
        decimals=0,
        colours={"INIT": "blue", "DONE": "green", "ERROR": "red"},
    )
    tables = Look(
        "Progress by table", "Each [[entries]] of the plan.", 24, 6, units={"done": "percent", "bytes": "bytes"}
    )
    return (
        board.with_row(Row("Progress"))
        .with_panel(sql_stat(now, "now"))
        .with_panel(sql_stat(status, "status", fields="/.*/"))
        .with_panel(sql_curves(rate, "rate"))
        .with_panel(sql_pie(outcomes, "outcomes"))
        .with_panel(sql_curves(hourly, "hourly", interval="1h"))
        .with_panel(sql_bars(statuses, "batches"))
        .with_panel(sql_table(tables, "tables"))
    )


def _add_errors(board: Dashboard) -> Dashboard:
    errors = Look("Errors by reason", "Batches in ERROR, with the statement that requeues those of one reason.", 16, 11)
    return (
        board.with_row(Row("Errors"))
        .with_panel(sql_table(errors, "errors"))
        .with_panel(words("Requeue", REQUEUE, width=8, height=11))
    )


def _add_batches(board: Dashboard) -> Dashboard:
    slowest = Look(
        "Slowest batches",
        "Of the batches that finished in the time shown: their last attempt.",
        16,
        9,
        units={"duration": "s"},
    )
    attempts = Look(
        "Attempts",
        "Of the last 10,000 attempts that began in the time shown: how they ended.",
        width=8,
        height=9,
        decimals=0,
        colours={
            "DONE": "green",
            "RETRY": "orange",
            "ERROR": "red",
            "given back": "blue",
            "running or crashed": "purple",
        },
    )
    unsuccessful = Look(
        "Attempts that are not DONE", "The latest first, with their error.", 24, 8, units={"duration": "s"}
    )
    return (
        board.with_row(Row("Batches"))
        .with_panel(sql_table(slowest, "slowest_batches"))
        .with_panel(sql_pie(attempts, "attempts"))
        .with_panel(sql_table(unsuccessful, "unsuccessful_attempts"))
    )


def _add_workers(board: Dashboard) -> Dashboard:
    workers = Look(
        "Workers by host",
        "Live processes, and processes lost within the last hour: silent without having deregistered. Their batches "
        "are free again as soon as PostgreSQL sees the connection end.",
        width=12,
    )
    claimed = Look("Claimed batches", "The batches of each worker, the oldest first.", 12, units={"claimed for": "s"})
    return (
        board.with_row(Row("Workers"))
        .with_panel(sql_table(workers, "workers"))
        .with_panel(sql_table(claimed, "claimed_batches"))
    )
