"""Passes over entries whose rows stay: which rows the next one takes, by what changed since the last."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from rowferry.db.connection import Connection, call, fetch_one
from rowferry.db.entries import EntryQueries
from rowferry.db.statements import statement

FURTHEST_WEST = timedelta(hours=12)
"""The most that a local time is behind UTC. Source: the IANA time zone database, Etc/GMT+12."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """The batches in ERROR that a pass takes up again, and their entries."""

    batches: int = 0
    entries: int = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the entries of one table."""

    number: int
    since: str | None
    """Rows that changed then or later are taken, as the column of `changed` writes it; None: all rows."""
    renewed: Renewed = Renewed()
    held_back_by: str | None = None

    @property
    def choices(self) -> dict[str, Any]:
        """What the payload of its batches says, beside the choices of the request."""
        return {"pass": self.number, "since": self.since}


def begin_pass(
    connection: Connection,
    queries: EntryQueries,
    queue: str,
    migration_id: int,
    choices: dict[str, Any],
    *,
    is_whole: bool,
) -> Pass | None:
    """Begin a pass, and give its batches in ERROR, which take part in it, these choices; None: an earlier one goes on.

    `is_whole`: it takes all rows that it is to take, so that the next one can go on from there. The caller holds the
    lock of `lock_enqueue` and adds the batches in the same transaction.
    """
    label = queries.entries.label
    begun = call(connection, "begin_pass", migration_id, label, is_whole, queue)
    if not begun:
        return None
    (row,) = begun
    since, failed = find_since(connection, queries, row["since"]), _count_failed(connection, queue, migration_id, label)
    found = Pass(row["number"], since, failed, row["held_back_by"])
    renewed = choices | found.choices
    del renewed["since"]  # theirs is earlier
    call(connection, "renew_batches", migration_id, queue, Jsonb(renewed), label)
    return found


def preview_pass(
    connection: Connection, queries: EntryQueries, queue: str, migration_id: int | None, plan: dict[str, Any]
) -> Pass | None:
    """Return what `begin_pass` would, and write nothing. After a change of the plan it may be fewer entries."""
    if migration_id is None:
        return Pass(1, None)
    chosen = {"migration_id": migration_id, "name": None, "label": queries.entries.label, "queue": queue}
    last = connection.execute(statement("last_pass"), {**chosen, "plan": Jsonb(plan)}).fetchone()
    if last is None or last["is_of_another_plan"]:
        return Pass(1, None)
    if last["waits"]:
        return None
    since = find_since(connection, queries, last["watermark"])
    return Pass(last["number"] + 1, since, _count_failed(connection, queue, migration_id, queries.entries.label))


def _count_failed(connection: Connection, queue: str, migration_id: int, label: str) -> Renewed:
    chosen = {"migration_id": migration_id, "queue": queue, "label": label}
    return Renewed(**fetch_one(connection, statement("count_renewed"), chosen))


def find_since(connection: Connection, queries: EntryQueries, since: datetime | None) -> str | None:
    """Return a moment as the column of `changed` writes it, or earlier where that leaves doubts; None: all rows.

    A column without a time zone is read as the one that is furthest behind UTC, of those that its newest time allows.
    """
    if since is None or queries.entries.changed is None:
        return None
    utc = since.astimezone(UTC)
    match queries.found.changed_kind:
        case "timestamp":
            return (utc - _find_lag(connection, queries)).replace(tzinfo=None).isoformat(" ")
        case "date":
            return (utc - FURTHEST_WEST).date().isoformat()
        case "epoch":
            return str(int(utc.timestamp()))
        case _:
            return utc.isoformat(" ")


def _find_lag(connection: Connection, queries: EntryQueries) -> timedelta:
    row = fetch_one(connection, queries.compose("find_lag"), queries.parameters())
    return FURTHEST_WEST if row["lag"] is None else min(row["lag"], FURTHEST_WEST)
