"""What an enqueue leaves alone: entries whose ids are covered by batches in ERROR, which wait for a requeue."""

import shlex
from dataclasses import dataclass

from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.entries import EntrySql
from rowferry.db.statements import statement
from rowferry.formatting import count, count_batches
from rowferry.plan import Plan


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Legacy entries, and the batches in ERROR of the queue `migrate` whose ranges they are in."""

    entries: int
    batches: int

    def describe(self, migration: str) -> str:
        """Return what to know and to do about them, in words."""
        entries = count(self.entries, "legacy entry is", "legacy entries are")
        return (
            f"{entries} left alone, in the ranges of {count_batches(self.batches)} in ERROR of the queue migrate. "
            f"`rowferry errors` says why; `rowferry requeue --all --migration {shlex.quote(migration)}` takes them up."
        )


def find_left_alone(connection: Connection, plan: Plan) -> LeftAlone | None:
    """Return what the next pass of a migration leaves alone; None where that is nothing."""
    with translated_errors(), connection.transaction():
        connection.execute(statement("lift_timeouts"))
        if not fetch_one(connection, statement("has_schema"))["has_schema"]:
            return None
        found = connection.execute(statement("find_migration"), {"name": plan.name}).fetchone()
        if found is None:
            return None
        rows = [_count(connection, EntrySql.of(connection, entries), found["id"]) for entries in plan.entries]
    left = LeftAlone(sum(row.entries for row in rows), sum(row.batches for row in rows))
    return left if left.entries else None


def _count(connection: Connection, entry_sql: EntrySql, migration_id: int) -> LeftAlone:
    query = entry_sql.compose("count_left_alone", wanted=entry_sql.has_form("legacy"))
    chosen = {"migration_id": migration_id, "queue": "migrate", "label": entry_sql.entries.label}
    return LeftAlone(**fetch_one(connection, query, entry_sql.parameters(**chosen)))
