"""A snapshot of a migration: the rows of all that the view shows, at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from psycopg.rows import DictRow

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.reports.coverage import Coverage, read_coverage
from rowferry_cli.status.chain import read_chain
from rowferry_cli.status.standby import describe_standby_wait
from rowferry_cli.status.state import read_state
from rowferry_cli.status.unusable import Unusable, find_unusable

Rows = Sequence[DictRow]
BY_QUEUE = ("tables", "reasons", "delayed", "host_rates", "finished", "pace")
"""What is read of each queue, by `watch_` and this name."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rows of the queries, and what is known beside them."""

    migration: DictRow
    """Its name, the bounds of its plan, and the moment."""
    state: DictRow
    """Its row of rowferry.migration_state."""
    queues: Rows
    """The rows of rowferry.queue_status, in the order of their chain."""
    workers: Rows = ()
    """A row for each live worker and batch that it has claimed."""
    throttled: Rows = ()
    """The operations that a server refuses at a higher rate."""
    of_queues: Mapping[str, Rows] = field(default_factory=dict[str, Rows])
    """By a name of BY_QUEUE: rows of all queues."""
    coverage: Coverage = field(default_factory=Coverage)
    """Which folders of the legacy bucket the plan leaves out."""
    unusable: Sequence[Unusable] = ()
    """Workers that skip the migration, by reason."""
    standby_wait: str = ""
    """As in the status."""

    def rows(self, name: str, queue: DictRow | None) -> list[DictRow]:
        """Return the rows of one queue."""
        return [row for row in self.of_queues.get(name, ()) if queue and row["queue"] == queue["queue"]]

    def list_rates(self, queue: DictRow | None) -> Sequence[float]:
        """Return entries a second in each whole slice of `pace.SLICE`, the latest last; none before it has begun."""
        return next((row["rates"] for row in self.rows("pace", queue)), ())

    def find_queue(self, name: str | None) -> DictRow | None:
        """Return the queue of that name, else the first that is not done, else the last; None if there is none."""
        named = [queue for queue in self.queues if queue["queue"] == name]
        open_ones = [queue for queue in self.queues if not queue["is_done"]]
        return next(iter([*named, *open_ones, *reversed(self.queues)]), None)

    def find_next(self, name: str | None) -> str | None:
        """Return the name of the queue after the one that `find_queue` returns, the first after the last."""
        names = [queue["queue"] for queue in self.queues]
        looked_at = self.find_queue(name)
        return None if looked_at is None else names[(names.index(looked_at["queue"]) + 1) % len(names)]


def read_snapshot(connection: Connection, migration: str) -> Snapshot:
    """Return a snapshot. Raises DatabaseUnavailable, or UsageError when the migration does not exist any more.

    All is read at one moment, in a transaction of its own: the connection is in autocommit.
    """
    with translated_errors(), connection.transaction():
        connection.execute(statement("watch_transaction"))
        row = connection.execute(statement("watch_migration"), {"migration": migration}).fetchone()
        if row is None:
            raise UsageError(f"Migration {migration} does not exist in the database any more.")
        chosen = {"id": row["id"], "migration": migration}
        return Snapshot(
            migration=row,
            state=read_state(connection, migration),
            queues=read_chain(connection, migration),
            workers=connection.execute(statement("watch_workers")).fetchall(),
            throttled=connection.execute(statement("watch_throttled"), chosen).fetchall(),
            of_queues={name: connection.execute(statement(f"watch_{name}"), chosen).fetchall() for name in BY_QUEUE},
            coverage=read_coverage(connection, migration),
            unusable=find_unusable(connection, migration),
            standby_wait=describe_standby_wait(connection),
        )
