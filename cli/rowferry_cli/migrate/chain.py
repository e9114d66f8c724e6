"""A queue of a migration and those that its batches are handed on to: their counts."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.plan import Plan, QueueSettings
from rowferry.queue_spec import QueueSpec
from rowferry.queues import find_queue, list_following, read_settings
from rowferry.reports.progress import Counts, read_counts_of
from rowferry_cli.throughput import Throughput


@dataclass(frozen=True, slots=True)
class ChainCounts:
    """The counts of each queue of a chain at one moment."""

    of: dict[str, Counts]
    """By queue, the first of the chain first."""
    paused: frozenset[str] = frozenset()
    """Queues that an operator has paused: what waits there is not waited for."""

    @property
    def waiting(self) -> list[str]:
        """Return the queues that have batches in INIT, and are not paused."""
        return [name for name, counts in self.of.items() if counts.batches_init and name not in self.paused]


@dataclass(frozen=True, slots=True)
class Chain:
    """What a run works on: one queue of a migration, and all that follow it."""

    connection: Connection
    plan: Plan
    queue: QueueSpec

    def list_names(self) -> list[str]:
        """Return the names of its queues. Raises UsageError for one that this host's workers could not serve."""
        return self._list_names(self._read_rows())

    def read(self) -> ChainCounts:
        """Return the counts of its queues."""
        rows = self._read_rows()
        names = self._list_names(rows)
        paused = frozenset(row["name"] for row in rows if row["is_paused"])
        return ChainCounts(read_counts_of(self.connection, self.plan.name, names), paused)

    def measure(self, now: ChainCounts, before: ChainCounts, elapsed: timedelta) -> Iterator[Throughput]:
        """Yield what each queue has done since `before`: the first, and of the others those that had any work."""
        for name, counts in now.of.items():
            done = counts.since(before.of.get(name, Counts()))
            if name == self.queue.name or done.batches:
                words = find_queue(name).choose_words(alone=self.plan.copies_alone)
                yield Throughput(done, elapsed, words, name)

    def _read_rows(self) -> list[dict[str, Any]]:
        with translated_errors():
            return self.connection.execute(statement("read_chain"), {"name": self.plan.name}).fetchall()

    def _list_names(self, rows: list[dict[str, Any]]) -> list[str]:
        """Return the queues that the plan leads to, and those that an operator has added in `rowferry.queue`."""
        following = {name: [*queue.then] for name, queue in read_settings(self.plan).items()}
        for row in rows:
            following.setdefault(row["name"], []).extend(row["next"])
        settings = {name: QueueSettings(then=tuple(dict.fromkeys(then))) for name, then in following.items()}
        return [find_queue(name).name for name in list_following(self.queue.name, settings)]
