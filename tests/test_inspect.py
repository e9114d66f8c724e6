"""Facts of objects in rows: streamed once, inflated as they go, written where the row still names the object."""

import gzip
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from entry_table import TO
from migration import Migration
from servers import Buckets

COLUMNS = {"size": "byte_size", "sha256": "digest", "lines": "line_count"}
ADD_COLUMNS = "alter table public.avatars add byte_size bigint, add digest text, add line_count integer"


@pytest.fixture
def inspected(buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    """Production rows with columns for facts, on each server."""
    return prepare(make_migration(buckets, buckets))


@pytest.fixture
def site(moto_buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    return prepare(make_migration(moto_buckets, moto_buckets))


def prepare(migration: Migration, **settings: Any) -> Migration:
    migration.execute(ADD_COLUMNS)
    migration.plan["queue"] = {"inspect": {"columns": COLUMNS, **settings}}
    return migration


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
    counts = migration.execute(
        "select sum(migrated)::int as migrated, sum(kept)::int as kept, sum(changed)::int as changed, "
        "sum(deleted)::int as deleted, sum(missing)::int as missing, sum(failed)::int as failed "
        "from rowferry.batch_queue where queue_name = 'inspect'"
    )
    return {name: count for name, count in counts[0].items() if count}


def facts(migration: Migration) -> dict[int, tuple[Any, ...]]:
    rows = migration.execute("select id, byte_size, digest, line_count from public.avatars order by id")
    return {row["id"]: (row["byte_size"], row["digest"], row["line_count"]) for row in rows}


def test_facts_are_written_into_the_rows_own_columns(inspected: Migration) -> None:
    plain, packed = b"one\ntwo\nthree", gzip.compress(b"a\n" * 1000) + gzip.compress(b"b\n")
    add(inspected, 1, plain)
    add(inspected, 2, packed)
    add(inspected, 3, b"")
    add(inspected, 4, None)
    assert run(inspected) == {"migrated": 3, "missing": 1}
    assert facts(inspected) == {
        1: (13, hashlib.sha256(plain).hexdigest(), 3),
        2: (len(packed), hashlib.sha256(packed).hexdigest(), 1001),
        3: (0, hashlib.sha256(b"").hexdigest(), 0),
        4: (None, None, None),
    }
