"""The verdict over many idle batches says of each what the verdict over one would say, whatever lies behind it."""

from contextlib import closing
from typing import Any

from entry_table import EntryTable
from rowferry.database import call, connect
from rowferry_worker.claim import begin_attempt, claim_batch
from rowferry_worker.ledger import Ledger
from rowferry_worker.verdict import write_idle

MOMENTS = {"id", "payload", "run_after", "created_at", "started_at", "finished_at"}
"""What differs between two batches that are otherwise alike."""


def settle(table: EntryTable, function: str) -> list[dict[str, Any]]:
    """Claim each batch by itself, finish it by one function or the other, and return all that was written of it."""
    with closing(Ledger("test")) as ledger, connect("test") as connection:
        while (batch := claim_batch(connection, ["migrate"])) is not None:
            attempt = begin_attempt(ledger, batch, "test")
            if function == "finish_idle":
                write_idle(connection, [(batch, attempt)])
            else:
                nothing: list[str] = []
                arguments = (batch.id, attempt.id, "DONE", None, None, 0, 0, 0, *[nothing] * 6)
                call(connection, "finish_batch", *arguments)
            connection.commit()
    wanted = [{name: value for name, value in batch.items() if name not in MOMENTS} for batch in table.batches()]
    failures = table.execute("select entry_id, outcome from rowferry.entry_failure order by batch_id, entry_id")
    return [*wanted, *failures, *table.execute("select requeues, number, verdict from rowferry.batch_attempt")]


PAST = """
update rowferry.batch_queue
set
    migrated = 1, kept = 2, changed = 1, vanished = 1, missing = 1, failed = 1, entry_count = 7, attempts = 1,
    payload = case id % 3
        when 1 then payload || '{"read_again": ["migrated", "kept"]}'
        when 2 then payload || '{"read_again": ["kept"]}'
        else payload
    end
"""
FAILURES = """
insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt)
select q.id, o.outcome, 'k', o.outcome, 'r', 'e', 1
from rowferry.batch_queue as q
cross join unnest(array['changed', 'vanished', 'missing', 'failed']) as o (outcome)
"""


def test_idle_batches_end_as_they_would_alone(table: EntryTable) -> None:
    """Whatever an earlier attempt has left: what it settled, what failed, what is to be read again."""
    found: list[list[dict[str, Any]]] = []
    for function in ("finish_batch", "finish_idle"):
        table.execute("truncate rowferry.batch_queue, rowferry.batch_attempt, rowferry.entry_failure restart identity")
        table.execute("truncate public.avatars")
        table.add_legacy(range(6))
        table.enqueue(1)
        table.execute(PAST)
        table.execute(FAILURES)
        found.append(settle(table, function))
        table.check_balance()
    assert found[0] == found[1]
    assert len(found[0]) == 6 + 12 + 6
