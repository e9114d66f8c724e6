"""Which two [[entries]] could get into each other's way: decided from their prefixes alone, before any scan."""

import re
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, LiteralString, cast

from psycopg import sql

from rowferry.db.entries import EntrySql
from rowferry.plan import Entries

Pair = tuple[EntrySql, EntrySql]


def may_clash(one: Entries, other: Entries) -> bool:
    """Return whether two different legacy keys, one of each, could become the same production key.

    Keys of one prefix never do: they keep all that follows it. Keys of two do where one production prefix begins with
    the other, unless the legacy prefixes differ by just the same end.
    """
    if len(one.production_prefix) < len(other.production_prefix):
        one, other = other, one
    if not one.production_prefix.startswith(other.production_prefix):
        return False
    return one.legacy_prefix != other.legacy_prefix + one.production_prefix[len(other.production_prefix) :]


def find_clashing_pairs(entry_sqls: Sequence[EntrySql]) -> list[Pair]:
    """Return the pairs whose actual legacy keys have to be compared."""
    return [(one, other) for one, other in combinations(entry_sqls, 2) if may_clash(one.entries, other.entries)]


def find_colliding_pairs(entry_sqls: Sequence[EntrySql]) -> list[Pair]:
    """Return the pairs where a legacy key of the first could become a key that the second has as a production key."""
    return [(one, other) for one, other in product(entry_sqls, repeat=2) if _overlap(one.entries, other.entries)]


def _overlap(one: Entries, other: Entries) -> bool:
    prefixes = (one.production_prefix, other.production_prefix)
    return prefixes[0].startswith(prefixes[1]) or prefixes[1].startswith(prefixes[0])


def compose_other(entry_sql: EntrySql, name: str) -> sql.SQL:
    """Return a statement over the second table of a pair: its parameters begin with `other_`."""
    text = entry_sql.compose(name).as_string(None)
    renamed = re.sub(r"%%|%\((\w+)\)s", lambda match: f"%(other_{match[1]})s" if match[1] else "%%", text)
    return sql.SQL(cast("LiteralString", renamed))


def other_parameters(entry_sql: EntrySql) -> dict[str, Any]:
    """Return the parameters of `compose_other`."""
    return {f"other_{name}": value for name, value in entry_sql.parameters().items()}
