"""The queues one after the other, in this process, and what each made of the entries."""

from typing import Any

from rowferry.batch import Outcome
from support.entries.entry_table import Record
from support.entries.migration import Migration


def verify(migration: Migration, batch_size: int = 100, **request: Any) -> list[Record]:
    """Verify, and return the batches of that."""
    return run_queue(migration, "verify", batch_size, **request)


def revert(migration: Migration, batch_size: int = 100, **request: Any) -> list[Record]:
    """Revert, and return the batches of that."""
    return run_queue(migration, "revert", batch_size, **request)


def run_queue(migration: Migration, queue: str, batch_size: int, **request: Any) -> list[Record]:
    migration.enqueue(batch_size, queue=queue, **request)
    migration.work(queue)
    return [batch for batch in migration.batches() if batch["queue_name"] == queue]


def outcomes(batches: list[Record]) -> dict[str, int]:
    """Return the entries of these batches by outcome, without the zeros."""
    counts = {str(outcome): sum(batch[outcome] for batch in batches) for outcome in Outcome}
    return {outcome: count for outcome, count in counts.items() if count}
