"""What the conformance suite must know of a queue: work to give it, and how to see that the work is done."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from psycopg.types.json import Jsonb

from rowferry.db.connection import call, connect
from rowferry.plan_file import plan_document
from rowferry.queue_spec import QueueSpec
from rowferry_enqueue.request import describe_queues
from support.entries.migration import Migration

INSERT_ITEMS = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count)
select id, %s, %s, %s from rowferry.migration
"""


class QueueFixture(ABC):
    """One queue, with entries that are numbered from 1.

    `migration` is a table `public.avatars(id, path)` and two buckets, as tests/support/entries/migration.py describes
    them; a queue whose specification names no sides gets a plan without buckets, and no credentials.
    """

    spec: ClassVar[QueueSpec]
    settings: ClassVar[Mapping[str, Any]] = {}
    """The plan's [queue.NAME]."""
    writes: ClassVar[tuple[str, str] | None] = None
    """A table that is written to, and the column that its rows are written in the order of; None: it writes no row."""

    @abstractmethod
    def prepare(self, migration: Migration, count: int) -> None:
        """Make what the work on the entries 1 to `count` needs: rows, objects, tables to write to."""

    def enqueue(self, migration: Migration, count: int) -> None:
        """Put the entries 1 to `count` in the queue, as one batch."""
        migration.enqueue(count, queue=self.spec.name)

    def enqueue_items(self, migration: Migration, items: Sequence[Mapping[str, Any]]) -> None:
        """Put these items in the queue, as one batch."""
        plan = migration.read_plan()
        queues = describe_queues(plan)
        with connect("suite") as connection:
            call(connection, "register_migration", plan.name, Jsonb(plan_document(plan)), Jsonb(queues))
            payload = Jsonb({**queues[self.spec.name]["payload"], "items": items})
            connection.execute(INSERT_ITEMS, (self.spec.name, payload, len(items)))

    @abstractmethod
    def look(self, migration: Migration) -> Mapping[int, object]:
        """Return what the work has made of each entry, by its number; without the entries that it did not reach."""

    @abstractmethod
    def wanted(self, number: int) -> object:
        """Return what the work makes of an entry."""

    @abstractmethod
    def spoil(self, migration: Migration, number: int) -> None:
        """Make a prepared entry one that the queue cannot settle: an object is missing, a value is refused."""

    def number_of(self, entry_id: str) -> int:
        """Return the number of an entry from its id."""
        return int(entry_id)

    def make_heavy(  # noqa: B027 - most queues compute nothing
        self, migration: Migration, number: int
    ) -> None:
        """Make the work on a prepared entry compute for a second or so; nothing, where the queue computes nothing."""
