"""The dashboard *Migration*: progress, rate, errors and their reasons. It reads PostgreSQL."""

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
Fix the cause first. Then requeue the batches with the role of an operator
(`rowferry init --grants ROLE --for operator`):

```sql
-- all of this migration
update rowferry.batch_queue set status = 'INIT'
where status = 'ERROR' and migration_id =
    (select id from rowferry.migration where name = '${migration}');
```

To requeue the batches of one reason, run the statement in the last column of the table beside this. A trigger resets
attempts, errors and the time of the next attempt. Migrated entries stay counted, and no object is copied twice.

| outcome | what it means | what to do |
| --- | --- | --- |
| missing | the legacy object does not exist | restore the object, or correct the row |
| conflict | a different production object exists | `rowferry enqueue --on-conflict keep` or `overwrite` |
| failed | another error | see the reason |
"""


def build_migration_board() -> Dashboard:
    """Return the dashboard."""
    board = Dashboard("Rowferry: Migration").uid("rowferry-migration").tags(["rowferry"]).timezone("browser")
    board = board.time("now-1h", "now").refresh("30s").tooltip(DashboardCursorSync.CROSSHAIR).editable()
    board = board.with_variable(sql_variable("migration", "Migration", "migrations"))
    board = board.with_variable(sql_variable("queue", "Queue", "queues", "first"))
    board = board.with_variable(sql_variable("host", "Host", "hosts", "all"))
    for section in (_add_progress, _add_chain, _add_errors, _add_batches, _add_workers):
        board = section(board)
    return board


def _add_progress(board: Dashboard) -> Dashboard:
    now = Look(
        "Now",
        "Finished and waiting entries of the queue, its rate of the last minute, and when all queues of the migration "
        "are finished at their rates. Of several queues: the least done, the most waiting, the slowest. No time is "
        "shown while a queue with waiting entries does not move.",
        width=20,
        height=4,
        decimals=0,
        units={"done": "percent", "entries waiting": "short", "time left": "dtdurations", "ends at": "dateTimeAsLocal"},
    )
    status = Look("Status", "Running, paused, no workers, nothing due, or done: all queues are.", width=4, height=4)
    rate = Look(
        "Entries a second",
        "By queue and outcome, at the time when the batch finished.",
        width=16,
        unit="short",
        colours={"migrated or kept/s": "green", "changed or deleted/s": "blue", "failed/s": "red"},
    )
    outcomes = Look("Outcomes", "All finished entries of the queue.", width=8, decimals=0, colours=OUTCOME_COLOURS)
    hourly = Look("Progress by hour", "Entries finished in each full hour.", width=16, unit="short")
    statuses = Look(
        "Batches by status",
        "INIT is waiting or claimed. ERROR needs an operator.",
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


def _add_chain(board: Dashboard) -> Dashboard:
    chain = Look(
        "Chain",
        "All queues of the migration, in the order in which they hand on. The slowest is the pace of the chain: the "
        "first that takes nearly as long as all of them. Time left includes the queues before.",
        width=16,
        units={"entries waiting": "short", "oldest due": "dtdurations", "time left": "dtdurations"},
        words={
            "state": {"slowest": "orange", "running": "blue", "done": "green", "in ERROR": "red", "paused": "yellow"}
        },
    )
    rate = Look("Entries a second by queue", "The lowest curve with waiting entries is the pace.", width=8)
    return board.with_row(Row("Chain")).with_panel(sql_table(chain, "chain")).with_panel(sql_curves(rate, "chain_rate"))


def _add_errors(board: Dashboard) -> Dashboard:
    errors = Look("Errors by reason", "Batches in ERROR, and the statement that requeues them.", 16, 11)
    return (
        board.with_row(Row("Errors"))
        .with_panel(sql_table(errors, "errors"))
        .with_panel(words("Requeue", REQUEUE, width=8, height=11))
    )


def _add_batches(board: Dashboard) -> Dashboard:
    slowest = Look(
        "Slowest batches",
        "The longest last attempts of batches that finished in the time shown.",
        16,
        9,
        units={"duration": "s"},
    )
    attempts = Look(
        "Attempts",
        "Verdicts of the last 10,000 attempts that started in the time shown.",
        width=8,
        height=9,
        decimals=0,
        colours={
            "DONE": "green",
            "RETRY": "orange",
            "ERROR": "red",
            "released": "blue",
            "running or crashed": "purple",
        },
    )
    unsuccessful = Look(
        "Attempts that are not DONE", "The latest first, with the error.", 24, 8, units={"duration": "s"}
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
        "Live processes, and processes lost within the last hour, which stopped without deregistering. Their batches "
        "can be claimed again as soon as PostgreSQL notices the end of the connection.",
        width=12,
    )
    claimed = Look("Claimed batches", "The batches of each worker, the oldest first.", 12, units={"claimed for": "s"})
    return (
        board.with_row(Row("Workers"))
        .with_panel(sql_table(workers, "workers"))
        .with_panel(sql_table(claimed, "claimed_batches"))
    )
