"""Other sessions that hold locks on a migration's rows while a worker needs them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg

from support.entries.migration import Migration
from support.processes.processes import wait_for


@contextmanager
def uncommitted(migration: Migration, *statements: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Yield another session that has done something and not committed; roll back its open transaction."""
    with psycopg.connect(migration.dsn) as other:
        for statement in statements:
            other.execute(statement.encode())
        yield other
        other.rollback()


@contextmanager
def work_while_locked(migration: Migration, *statements: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Yield once the worker waits for what another session has locked; in the end wait for the worker."""
    waits = "select from pg_stat_activity where wait_event_type = 'Lock'"
    with uncommitted(migration, *statements) as other, ThreadPoolExecutor(1) as pool:
        working = pool.submit(migration.work)
        wait_for(lambda: working.done() or migration.execute(waits))
        assert not working.done(), working.result()
        yield other
        working.result(100)
