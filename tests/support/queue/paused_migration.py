"""What a fault of a side must leave behind: a paused migration and nothing burnt."""

from support.entries.migration import Migration
from support.processes.processes import wait_for


def state_of(migration: Migration) -> tuple[bool, str]:
    """Return whether a migration is paused, and the reason."""
    (row,) = migration.execute("select paused_at, pause_reason from rowferry.migration")
    return row["paused_at"] is not None, row["pause_reason"] or ""


def work_until_paused(migration: Migration, parallel: int = 16, queue: str = "migrate") -> None:
    """Work on what is due; the worker rests after each fault, so that there are moments without any batch."""
    with migration.at_work(parallel, [queue]) as take_turn:
        wait_for(lambda: take_turn() is None or state_of(migration)[0])


def check_nothing_burnt(migration: Migration) -> None:
    assert migration.statuses() == {"INIT"}
    assert set(migration.verdicts()) == {"RELEASED"}
    assert 3 <= len(migration.verdicts()) <= 4
    assert {batch["attempts"] for batch in migration.batches()} == {0}
    assert migration.failures() == []
