"""The fixtures of rowferry's own queues, and where those of others are found."""

import gzip
import os
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import entry_points
from typing import Any, ClassVar

from queue_conformance.fixture import QueueFixture
from rowferry.queue_spec import QueueSpec
from rowferry_queues.inspect.spec import INSPECT
from rowferry_queues.migrate.spec import MIGRATE
from rowferry_queues.parts.spec import PARTS
from rowferry_queues.revert.spec import REVERT
from rowferry_queues.tag.spec import TAG
from rowferry_queues.verify.spec import VERIFY
from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration


class MigrateFixture(QueueFixture):
    """Objects and rows; both at their production keys in the end."""

    spec: ClassVar[QueueSpec] = MIGRATE
    writes = ("public.avatars", "id")

    def prepare(self, migration: Migration, count: int) -> None:
        migration.fill(count)

    def look(self, migration: Migration) -> Mapping[int, object]:
        moved = {int(row_id): key for row_id, key in migration.rows().items() if key and key.startswith(TO)}
        return {number: (key, migration.production.read(key)) for number, key in moved.items()}

    def wanted(self, number: int) -> object:
        return f"{TO}u{number}/me.png", f"body of {number}".encode()

    def spoil(self, migration: Migration, number: int) -> None:
        migration.legacy.delete(f"{FROM}u{number}/me.png")


class VerifyFixture(MigrateFixture):
    """Production objects that are missing, which a repair copies again."""

    spec: ClassVar[QueueSpec] = VERIFY
    writes = None

    def prepare(self, migration: Migration, count: int) -> None:
        migration.fill(count).migrate()
        for key in migration.production.listing():
            migration.production.delete(key)

    def enqueue(self, migration: Migration, count: int) -> None:
        migration.enqueue(count, queue=self.spec.name, repair="older")

    def look(self, migration: Migration) -> Mapping[int, object]:
        number_of = {key: int(row_id) for row_id, key in migration.rows().items()}
        return {number_of[key]: migration.production.read(key) for key in migration.production.listing()}

    def wanted(self, number: int) -> object:
        return f"body of {number}".encode()


class RevertFixture(QueueFixture):
    """Production rows whose legacy objects are where they were."""

    spec: ClassVar[QueueSpec] = REVERT
    writes = ("public.avatars", "id")

    def prepare(self, migration: Migration, count: int) -> None:
        migration.fill(count).migrate()

    def look(self, migration: Migration) -> Mapping[int, object]:
        return {int(row_id): key for row_id, key in migration.rows().items() if key and key.startswith(FROM)}

    def wanted(self, number: int) -> object:
        return f"{FROM}u{number}/me.png"

    def spoil(self, migration: Migration, number: int) -> None:
        refused = f"{FROM}u{number}/me.png"
        migration.execute(f"alter table public.avatars add constraint stays check (path <> '{refused}') not valid")


COLUMNS = {"size": "byte_size", "sha256": "digest", "lines": "line_count"}
HEAVY_LINES = os.urandom(1024).hex().encode() + b"\n"


class InspectFixture(QueueFixture):
    """Production rows, and their compressed objects."""

    spec: ClassVar[QueueSpec] = INSPECT
    settings: ClassVar[Mapping[str, object]] = {"columns": COLUMNS}
    writes = ("public.avatars", "id")

    def prepare(self, migration: Migration, count: int) -> None:
        migration.execute("alter table public.avatars add byte_size bigint, add digest bytea, add line_count integer")
        for number in range(1, count + 1):
            migration.production.put(f"{TO}{number}", self._make_body(number))
            migration.execute("insert into public.avatars (id, path) values (%s, %s)", (number, f"{TO}{number}"))

    def look(self, migration: Migration) -> Mapping[int, object]:
        rows = migration.execute("select * from public.avatars where byte_size is not null")
        return {row["id"]: (row["byte_size"], row["digest"].hex(), row["line_count"]) for row in rows}

    def wanted(self, number: int) -> object:
        body = self._make_body(number)
        return len(body), sha256(body).hexdigest(), number

    def spoil(self, migration: Migration, number: int) -> None:
        """Cut the object short."""
        migration.production.put(f"{TO}{number}", self._make_body(number)[:-5])

    def make_heavy(self, migration: Migration, number: int) -> None:
        """Let the object inflate to 400 MB."""
        migration.production.put(f"{TO}{number}", gzip.compress(HEAVY_LINES * 2000, mtime=0) * 100)

    def _make_body(self, number: int) -> bytes:
        return gzip.compress(b"line\n" * number, mtime=0)


class TagFixture(QueueFixture):
    """Production rows of tenants, whose objects have a tag already."""

    spec: ClassVar[QueueSpec] = TAG
    settings: ClassVar[Mapping[str, Any]] = {"set": {"tier": "cold", "tenant": {"column": "tenant_id"}}}

    def prepare(self, migration: Migration, count: int) -> None:
        migration.execute("alter table public.avatars add tenant_id int")
        for number in range(1, count + 1):
            migration.production.put(f"{TO}{number}", b"body", Tagging="owner=me")
            migration.execute("insert into public.avatars values (%s, %s, %s)", (number, f"{TO}{number}", number))

    def look(self, migration: Migration) -> Mapping[int, object]:
        tags = {key: migration.production.tags(key) for key in migration.production.listing()}
        return {int(key.removeprefix(TO)): found for key, found in tags.items() if "tier" in found}

    def wanted(self, number: int) -> object:
        return {"owner": "me", "tier": "cold", "tenant": str(number)}

    def spoil(self, migration: Migration, number: int) -> None:
        migration.production.delete(f"{TO}{number}")


class PartsFixture(MigrateFixture):
    """`parts`: an entry's object is begun by one attempt, and completed by another once its parts are sent."""

    spec: ClassVar[QueueSpec] = PARTS
    settings: ClassVar[Mapping[str, Any]] = {"least_bytes": 1}
    writes = None

    def prepare(self, migration: Migration, count: int) -> None:
        migration.plan["migration"] |= {"transfer": "stream"}
        migration.fill(count)

    def enqueue(self, migration: Migration, count: int) -> None:
        """Let the parts be sent, and put the entries in the queue once more."""
        super().enqueue(migration, count)
        queue = self.spec.name
        with migration.at_work(queues=[queue]) as take_turn:
            take_turn()
            migration.execute("delete from rowferry.batch_queue where not payload ? 'upload'")
            while take_turn():
                pass
        migration.execute("delete from rowferry.batch_queue")
        migration.execute("delete from rowferry.batch_attempt")
        super().enqueue(migration, count)

    def look(self, migration: Migration) -> Mapping[int, object]:
        keys = {f"{TO}u{number}/me.png": number for number in range(1, 100)}
        listed = list(migration.production.listing())
        left = {row["key"] for row in migration.execute("select key from rowferry.upload")}
        return {keys[key]: (migration.production.read(key), key in left) for key in listed}

    def wanted(self, number: int) -> object:
        return f"body of {number}".encode(), False


GROUP = "rowferry.queue_fixtures"
"""The group of entry points that name the fixtures of other packages, each by the name of its queue."""
OWN: tuple[type[QueueFixture], ...] = (
    InspectFixture,
    MigrateFixture,
    PartsFixture,
    RevertFixture,
    TagFixture,
    VerifyFixture,
)


def find_fixture(queue: str) -> QueueFixture:
    """Return the fixture of a queue. Raises LookupError, with what to add, where there is none."""
    for own in OWN:
        if own.spec.name == queue:
            return own()
    for point in entry_points(group=GROUP, name=queue):
        return point.load()()
    raise LookupError(
        f"The queue {queue} has no fixture, so nothing holds it to its promises: add a QueueFixture of it to "
        "tests/queue_conformance/fixtures.py, or, in a package of its own, an entry point of its name in the group "
        f"{GROUP} (docs/own-queue.md)."
    )
