"""Objects to inspect, and runs of the queue `inspect` over them."""

import asyncio
from typing import Any

from rowferry_queues.inspect import computing_process
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.s3.fake_s3 import FakeAddress

MODULE = "support.queue.inspecting_functions"
"""What ROWFERRY_ALLOWED_FUNCTIONS must list for `use`."""


def add(migration: Migration, row_id: int, body: bytes | None, **properties: Any) -> str:
    """Add a production row and its object; return the key."""
    key = f"{TO}{row_id}"
    if body is not None:
        migration.production.put(key, body, **properties)
    migration.execute("insert into public.avatars (id, path) values (%s, %s)", (row_id, key))
    return key


def run(migration: Migration, batch_size: int = 100) -> dict[str, int]:
    """Inspect, and return the counts of all batches of the queue; each balances."""
    migration.enqueue(batch_size, queue="inspect")
    migration.work("inspect")
    migration.check_balance()
    return migration.counts("inspect")


def cut(server: FakeAddress) -> None:
    """End all connections a moment later, while a body is on its way."""
    asyncio.get_running_loop().call_later(0.01, lambda: [each.abort() for each in server.fake.connections])


def end_processes() -> None:
    """End the processes that wait for calls of functions: they know the environment of an earlier test."""
    while computing_process.idle:
        computing_process.idle.pop().kill()


def use(migration: Migration, function: str, **settings: object) -> None:
    named = {"columns": {"words": "words"}, "function": f"{MODULE}:{function}", "function_seconds": 20}
    migration.plan["queue"] = {"inspect": named | settings}


def words_of(migration: Migration) -> dict[int, str | None]:
    rows = migration.execute("select id, words from public.avatars order by id")
    return {row["id"]: row["words"] for row in rows}
