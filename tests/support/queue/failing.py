"""A batch that fails with a given reason."""

import json

from support.entries.entry_table import EntryTable


def fail(
    table: EntryTable, entries: dict[str, str], *, error: str = "2 entries failed", migration: str = "avatars"
) -> int:
    """Add a batch in ERROR whose entries, by key, have failed for a reason; return its id."""
    migration_id = table.execute(
        "insert into rowferry.migration (name, plan) values (%s, '{}') "
        "on conflict (name) do update set name = excluded.name returning id",
        (migration,),
    )[0]["id"]
    (row,) = table.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, status, attempts, error, "
        "migrated, failed, started_at, finished_at, worker_id, run_after) "
        "values (%s, 'migrate', %s, %s, 'ERROR', 5, %s, 1, %s, now(), now(), 'somebody', "
        "now() + interval '1 day') returning id",
        (migration_id, json.dumps({"entries": "public.avatars.path"}), len(entries) + 1, error, len(entries)),
    )
    for key, reason in entries.items():
        table.execute(
            "insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt) "
            "values (%s, %s, %s, 'failed', %s, %s, 5)",
            (row["id"], key, key, reason, f"{reason}: more words"),
        )
    batch_id: int = row["id"]
    return batch_id
