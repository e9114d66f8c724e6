"""Live workers that cannot work on a migration, as with wrong credentials: they skip it, and serve others."""

from dataclasses import dataclass

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.formatting import count

MOST_NAMED = 3
"""Workers that a sentence names."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """Workers that skip a migration, or one queue of it, for one reason; or all, since they get no connection."""

    error: str
    migration: str | None
    """None: they wait for a connection to PostgreSQL."""
    queue: str | None
    """None: all of the migration."""
    workers: list[str]
    live: int
    """All live workers."""

    def __str__(self) -> str:
        """Return which workers they are, and why, in one sentence."""
        if self.migration is None:
            return self.brief
        number = len(self.workers)
        more = f" and {number - MOST_NAMED} more" if number > MOST_NAMED else ""
        named = f"{', '.join(self.workers[:MOST_NAMED])}{more}"
        what = f"migration {self.migration}" if self.queue is None else f"the queue {self.queue} of {self.migration}"
        skip = count(number, "live worker skips", "live workers skip")
        return f"{skip} {what} ({named}): {self.error.rstrip('.')}."

    @property
    def brief(self) -> str:
        """Return the same for a short line: the reason comes early, and the migration goes without saying."""
        if self.migration is None:
            wait = "waits" if len(self.workers) == 1 else "wait"
            processes = f"{len(self.workers)} of {count(self.live, 'process', 'processes')}"
            remedy = "allow more, or start fewer with --processes"
            return f"{processes} {wait} for a connection: {self.error.rstrip('.')}; {remedy}."
        what = "" if self.queue is None else f" the queue {self.queue}"
        skip = count(len(self.workers), "worker skips", "workers skip")
        return f"{skip}{what or ' it'}: {self.error.rstrip('.')}."

    def names(self, pid: int, host: str) -> bool:
        """Return whether a process is one of them."""
        return f"process {pid} of {host}" in self.workers


def find_unusable(connection: Connection, migration: str | None) -> tuple[Unusable, ...]:
    """Return the live workers that skip a migration, by reason, and those that wait; None: any migration."""
    with translated_errors():
        rows = connection.execute(statement("find_unusable"), {"migration": migration}).fetchall()
    return tuple(
        Unusable(row["error"], row["migration"], row["queue_name"], row["workers"], row["live"]) for row in rows
    )
