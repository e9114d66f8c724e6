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
Mend the cause first. Then put the batches back in the queue, as a role that may
(`rowferry init --grants ROLE --for operator`):

```sql
-- all of this migration
update rowferry.batch_queue set status = 'INIT'
where status = 'ERROR' and migration_id =
    (select id from rowferry.migration where name = '${migration}');
```

For one reason only: the table beside this has the statement in its last column. Attempts, errors and the time of the
next try are reset by a trigger; what was migrated stays counted, and no object is copied twice.

| outcome | what it means | what to do |
| --- | --- | --- |
| missing | no legacy object | a row without an object: restore the object, or correct the row |
| conflict | a different production object | `rowferry enqueue --on-conflict keep` or `overwrite` |
| failed | anything else | the reason says it |
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
        "Entries that have an outcome, those that have none yet, the speed of the last minute, and when the rest is "
        "done at that speed. No time is shown while nothing moves.",
        width=20,
        height=4,
        decimals=0,
        units={"done": "percent", "entries left": "short", "time left": "dtdurations", "ends at": "dateTimeAsLocal"},
    )
    state = Look("State", "Running, paused, without workers, or with nothing due now.", width=4, height=4)
    rate = Look(
        "Entries a second",
        "By what became of them, when their batch was finished.",
        width=16,
        unit="short",
        colours={"rows updated/s": "green", "changed or gone/s": "blue", "failed/s": "red"},
    )
    outcomes = Look("Outcomes", "All finished entries.", width=8, decimals=0, colours=OUTCOME_COLOURS)
    hourly = Look("Progress by hour", "Entries finished in each full hour.", width=16, unit="short")
    statuses = Look(
        "Batches by status",
        "INIT waits or is in hand, ERROR needs somebody.",
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
        .with_panel(sql_stat(state, "state", fields="/.*/"))
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
        "Slowest batches", "Their last attempt, of those finished in the time shown.", 16, 9, units={"took": "s"}
    )
    attempts = Look(
        "Attempts",
        "How the last 10,000 attempts ended, of those begun in the time shown.",
        width=8,
        height=9,
        decimals=0,
        colours={
            "DONE": "green",
            "RETRY": "orange",
            "ERROR": "red",
            "given back": "blue",
            "running, or died": "purple",
        },
    )
    troubles = Look("Attempts that are not DONE", "The latest first, with their error.", 24, 8, units={"took": "s"})
    return (
        board.with_row(Row("Batches"))
        .with_panel(sql_table(slowest, "slowest"))
        .with_panel(sql_pie(attempts, "attempts"))
        .with_panel(sql_table(troubles, "troubles"))
    )


def _add_workers(board: Dashboard) -> Dashboard:
    workers = Look(
        "Workers by host",
        "Processes that live, and those lost within the last hour: gone without signing off. Their batches are free "
        "again as soon as PostgreSQL has seen the connection end.",
        width=12,
    )
    in_hand = Look("Batches in hand", "What each worker is at, the oldest first.", 12, units={"held for": "s"})
    return (
        board.with_row(Row("Workers"))
        .with_panel(sql_table(workers, "workers"))
        .with_panel(sql_table(in_hand, "in_hand"))
    )
