"""The query by which KEDA scales the workers counts what they may work on."""

import psycopg
from psycopg import sql

from rowferry.db.grants import compose_grants
from support.docs.kubernetes import read
from support.entries.entry_table import EntryTable
from support.postgres.roles import new_role


def count_work(table: EntryTable) -> int:
    """Ask what KEDA asks, as a worker's own role."""
    (trigger,) = read("components/keda/scaler.yaml")["ScaledObject"]["spec"]["triggers"]
    with new_role(table.dsn) as role, psycopg.connect(table.dsn) as connection:
        connection.execute(compose_grants(role, ["worker"], None))
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        (row,) = connection.execute(trigger["metadata"]["query"]).fetchall()
        connection.rollback()
    return row[0]


def test_keda_counts_the_batches_that_may_be_worked_on_now_and_no_others(table: EntryTable) -> None:
    assert count_work(table) == 0
    table.add_legacy(range(1, 31))
    table.enqueue(batch_size=10)
    assert count_work(table) == 3
    table.execute("update rowferry.batch_queue set run_after = now() + interval '1 hour' where id = 1")
    assert count_work(table) == 2
    table.execute("update rowferry.batch_queue set queue_name = 'verify' where id = 2")
    assert count_work(table) == 1, "these workers do not serve that queue"
    table.execute("update rowferry.migration set paused_at = now()")
    assert count_work(table) == 0
