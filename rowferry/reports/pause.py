"""Pausing a migration and letting it go on: a fact in SQL that the workers read at their next claim."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rowferry.db.connection import Connection, call, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import DatabaseBusy


@dataclass(frozen=True, slots=True)
class Standing:
    """How a migration stands after it was paused or resumed."""

    migration: str
    changed: bool
    """Whether it was otherwise before."""
    paused_at: datetime | None
    """Since when it is paused, or was until now; None: it was not."""
    open_batches: int
    """Batches in INIT, those in hand included."""
    in_hand: int
    pause_reason: str | None
    """Why workers have paused it, or had until now; None where a person did, or where it ran."""
    workers: int
    """Workers that live, whatever they work on."""

    @property
    def waiting(self) -> int:
        """Return the batches that nobody has in hand."""
        return max(0, self.open_batches - self.in_hand)


def pause(connection: Connection, migration: str | None) -> list[Standing]:
    """Pause one migration, or all where None; return how each stands.

    Raises DatabaseBusy while another session holds the migration's row.
    """
    return _set(connection, "pause", migration)


def resume(connection: Connection, migration: str | None) -> list[Standing]:
    """Let one migration, or all where None, go on; return how each stands. Raises as `pause` does."""
    return _set(connection, "resume", migration)


def find_pause(connection: Connection, migration: str) -> str | None:
    """Return how a migration is paused, as a clause with its reason where there is one; None while it runs."""
    row = connection.execute(statement("find_migration"), {"name": migration}).fetchone()
    if row is None or row["paused_at"] is None:
        return None
    return word_pause(row["paused_at"], row["pause_reason"])


def word_way_on(migration: str, paused: str) -> str:
    """Return what a command says at its end that could not go on because its migration is paused."""
    return f"Migration {migration} is {paused}. Next: mend that, `rowferry resume {migration}`, and this command again."


def word_pause(paused_at: datetime, reason: str | None) -> str:
    """Return `paused since ...`, with the reason where there is one, without a full stop."""
    since = f"paused since {paused_at:%Y-%m-%d %H:%M:%S %Z}"
    return f"{since}: {reason.rstrip('.')}" if reason else since


def _set(connection: Connection, function: str, migration: str | None) -> list[Standing]:
    try:
        with translated_errors():
            # Read before: with the pause its reason is forgotten.
            reasons = {row["name"]: row["pause_reason"] for row in connection.execute(statement("read_pause_reasons"))}
            rows = call(connection, function, migration)
            return [_read_standing(connection, row, reasons.get(row["migration"])) for row in rows]
    except DatabaseBusy as error:
        words = f"Could not {function}: another session holds the migration's row; try again when it has ended."
        raise DatabaseBusy(words) from error


def _read_standing(connection: Connection, row: dict[str, Any], reason: str | None) -> Standing:
    facts = fetch_one(connection, statement("read_migration_status"), {"migration": row["migration"]})
    return Standing(**row, pause_reason=reason, **facts)
