"""Migrations to report on, which several tests of reports share."""

import pytest

from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.screens.hostile_texts import BIDI, HOSTILE, SECRET


@pytest.fixture
def eventful(migration: Migration) -> Migration:
    """A migration with every outcome, batches that wait, one that failed as a whole, and a verification."""
    migration.fill(7).add_row(8, "image/lost.png").add(9, "other.png")
    migration.production.put("avatar/other.png", b"something else")
    migration.migrate(3)
    migration.enqueue(5, queue="verify")
    migration.production.delete("avatar/u2/me.png")
    migration.work("verify")
    for start, count in ((20, 1), (21, 2), (23, 1)):
        migration.fill(count, start=start).enqueue(2)
    migration.execute(
        "update rowferry.batch_queue set status = 'ERROR', failed = 2, error = 'it was too much' "
        "where status = 'INIT' and entry_count = 2"
    )
    return migration


@pytest.fixture
def hostile(table: EntryTable) -> EntryTable:
    """A migration whose keys and errors are HTML, secrets, marks of direction, and long."""
    table.add_legacy(range(8)).enqueue(2)
    reasons = [HOSTILE, f"https://me:{SECRET}@s3/?X-Amz-Signature={SECRET}", BIDI, "x" * 3000]
    for batch, reason in enumerate(reasons, 1):
        table.execute(
            "insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt) "
            "values (%s, '1', %s, 'failed', %s, %s, 1), (%s, '2', %s, 'failed', %s, %s, 1)",
            (batch, reason, reason, reason, batch, "k/" + "long" * 900, reason, f"password={SECRET} {reason}"),
        )
    table.execute(
        "update rowferry.batch_queue set status = 'ERROR', failed = 2, finished_at = now(), started_at = now(), "
        "worker_id = '<b>host</b>:1:a'"
    )
    table.execute(
        "insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, finished_at, verdict, error) "
        "select id, 0, 1, '<b>host</b>:1:a', now(), 'RETRY', %s from rowferry.batch_queue",
        (f"{HOSTILE} token={SECRET}",),
    )
    table.execute("update rowferry.migration set paused_at = now(), pause_reason = %s", (f"{HOSTILE} secret={SECRET}",))
    return table
