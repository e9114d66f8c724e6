"""The queues that are known here, and those of a database: settings, what waits, who serves them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.queues import find_queue, list_queues, name_packages


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownQueue:
    """A queue that is installed here."""

    name: str
    package: str
    """The distribution that it comes from, with its version."""
    summary: str = ""
    fault: str | None = None
    """Why it cannot be used; None: it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One queue of one migration in the database."""

    migration: str
    queue: str
    state: str
    """A word of rowferry.queue_status."""
    priority: int
    weight: float
    max_in_hand: int | None
    paused_at: datetime | None
    """Since when it is paused, or its migration."""
    pause_reason: str | None
    is_paused_whole: bool
    """Whether its migration is paused."""
    next: list[str]
    waiting_batches: int
    """Batches in INIT that no live worker has claimed."""
    claimed_batches: int
    workers: int
    """Live workers that serve the queue, those included that cannot."""
    is_known: bool
    """Whether it is installed here, and can be used."""


def list_known() -> list[KnownQueue]:
    """Return the queues that are installed here, a faulty one with its fault."""
    found: list[KnownQueue] = []
    for name in list_queues():
        try:
            found.append(KnownQueue(name=name, package=name_packages(name), summary=find_queue(name).summary))
        except UsageError as error:
            found.append(KnownQueue(name=name, package=name_packages(name), fault=str(error)))
    return found


def read_lines(connection: Connection) -> list[Line]:
    """Return the queues of all migrations in the database that have settings or batches."""
    usable = {queue.name for queue in list_known() if queue.fault is None}
    with translated_errors():
        rows = connection.execute(statement("list_queues")).fetchall()
    return [Line(**row, is_known=row["queue"] in usable) for row in rows]


def as_document(known: list[KnownQueue], lines: list[Line]) -> dict[str, Any]:
    """Return both as plain data, for JSON."""
    return {
        "known": [
            {"name": queue.name, "package": queue.package, "summary": queue.summary, "fault": queue.fault}
            for queue in known
        ],
        "queues": [
            {
                "migration": line.migration,
                "queue": line.queue,
                "known": line.is_known,
                "state": line.state,
                "priority": line.priority,
                "weight": line.weight,
                "max_in_hand": line.max_in_hand,
                "paused_at": line.paused_at and line.paused_at.isoformat(),
                "pause_reason": line.pause_reason,
                "paused_whole": line.is_paused_whole,
                "next": line.next,
                "waiting_batches": line.waiting_batches,
                "claimed_batches": line.claimed_batches,
                "workers": line.workers,
            }
            for line in lines
        ],
    }
