"""Objects to inspect, and runs of the queue `inspect` over them."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from rowferry_lab.servers.fake_s3.http import Request
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


run = partial(Migration.run_queue, queue="inspect")


def cut_reads(server: FakeAddress, times: int, then: Callable[[str], None] = lambda _key: None) -> list[str]:
    """End all connections a moment after the first reads of objects, while their bodies are on their way.

    Return the keys of all reads, filled as they come; `then` is called for each that is left alone.
    """
    tried: list[str] = []

    def interfere(request: Request) -> None:
        if request.operation == "GetObject":
            tried.append(request.key)
            if len(tried) > times:
                then(request.key)
                return
            asyncio.get_running_loop().call_later(0.01, lambda: [each.abort() for each in server.fake.connections])

    server.fake.before = interfere
    return tried


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
