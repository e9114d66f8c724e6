"""Counts how many sampled rows name existing objects where SQL computes the keys."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from psycopg import sql

from rowferry.db.connection import identifiers, literal
from rowferry_cli.discover.evidence.bucket import LegacyBucket
from rowferry_cli.discover.evidence.catalogue import Catalogue, UserTable


@dataclass(frozen=True, slots=True)
class Measured:
    """Sampled rows, those whose required objects all exist, and one key that exists."""

    sampled: int
    existing: int
    example_key: str = ""


def measure_objects(
    catalogue: Catalogue, bucket: LegacyBucket, table: UserTable, entries: Mapping[str, Any], most: int
) -> Measured:
    """Return how many rows have all objects that `objects` of these entries yields."""
    rows = sample_objects(catalogue, table, entries, most)
    existing = bucket.find(key for keys in rows for key in keys)
    there = [keys for keys in rows if existing.issuperset(keys)]
    return Measured(len(rows), len(there), there[0][0] if there else "")


def sample_objects(
    catalogue: Catalogue, table: UserTable, entries: Mapping[str, Any], most: int
) -> Sequence[Sequence[str]]:
    """Return the legacy keys that `objects` yields for each of some rows that are entries and have any."""
    value = sql.SQL("to_json(({}\n))::text").format(literal(entries["objects"]))
    key = sql.SQL("e.{}::text").format(identifiers(entries["key"]))
    where = sql.SQL("{key} <> '' and ({where}\n)").format(key=key, where=literal(entries.get("where", "true")))
    for column, (legacy_value, *_) in entries.get("moved", {}).items():
        moved = sql.SQL(" and e.{column} = {value}").format(column=identifiers(column), value=sql.Literal(legacy_value))
        where += moved
    rows = catalogue.sample(table, value, where, most, named=f"{table.plan_name}.{entries['key']}")
    return [keys for row in rows if (keys := _read_keys(row.value))]


def _read_keys(value: str) -> list[str]:
    found: Any = json.loads(value)
    listed = cast("list[Any]", found) if isinstance(found, list) else [found]
    return [key for key in listed if isinstance(key, str) and key]
