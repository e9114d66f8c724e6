"""Rows that stay: a table of files, its objects in both buckets, and passes over it."""

import time
from datetime import UTC, datetime
from typing import Any

from support.entries.entry_table import keyed
from support.entries.migration import Migration
from support.processes.cli import Done
from support.processes.processes import wait_for
from support.queue.workers_here import run_here

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def make_table(migration: Migration, column_type: str) -> Migration:
    """Make a table without a marker, whose rows say when they changed, and the plan that leaves them as they are."""
    migration.execute(f"create table public.files (id bigint primary key, path text, updated_at {column_type})")
    migration.plan_entries("public.files", **keyed("path", "", "", rows="stay", changed="updated_at"))
    return migration


def add_file(migration: Migration, number: int, body: str = "v1", changed: Any = LONG_AGO) -> None:
    migration.legacy.put(f"f{number}", body.encode())
    migration.execute("insert into public.files values (%s, %s, %s)", (number, f"f{number}", changed))


def replace_file(migration: Migration, number: int, body: str, changed: Any = None) -> None:
    """Replace an object in the application's order: the object, then the row."""
    wait_for_next_second()
    migration.legacy.put(f"f{number}", body.encode())
    migration.execute("update public.files set updated_at = %s where id = %s", (changed or now(), number))


def now() -> datetime:
    return datetime.now(UTC)


def wait_for_next_second() -> None:
    """Wait until what is written now is newer than what was written, as far as Last-Modified tells.

    A file's time is that of the kernel's last tick (up to 10 ms ago): it may still be of the second before.
    """
    second = int(time.time())
    wait_for(lambda: int(time.time() - 0.05) > second)


def read_production(migration: Migration, count: int) -> list[str]:
    return [(migration.production.read(f"f{number}") or b"nothing").decode() for number in range(1, count + 1)]


def cut_over(migration: Migration, *arguments: str) -> Done:
    """Run the command without a question, in this process with its workers."""
    return run_here(migration.folder, "cutover", "--yes", *arguments)


def passes(migration: Migration) -> list[dict[str, Any]]:
    return migration.execute("select * from rowferry.pass order by number")
