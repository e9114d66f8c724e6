"""One migration between two servers: what was planted in it, and how the product is let loose on it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from unittest.mock import patch

from botocore.exceptions import ClientError

from conformance.ask import Facts
from conformance.plain import make_buckets
from rowferry_lab.servers.s3_servers import S3Server
from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration
from support.postgres.servers import DatabaseServers, find_installations
from support.s3.buckets import S3Access
from support.s3.objects import digest

Direction = Literal["within", "from", "to"]
"""Where the server that is looked at stands: on both sides, as legacy, as production."""
MIB = 1024 * 1024
PART_BYTES = 5 * MIB
IN_PARTS_BYTES = PART_BYTES + MIB
"""The size of an object that travels by parts, with little trouble."""


class Wrong(AssertionError):
    """What no server's limit excuses."""


@dataclass(slots=True)
class Environment:
    """A migration, what is known of both servers, and the ids of what each check has planted."""

    direction: Direction
    legacy: Facts
    production: Facts
    migration: Migration
    planted: dict[str, dict[str, str]] = field(default_factory=dict)
    """By check: row id → the name of the object, behind either prefix."""
    existing: dict[str, str | None] = field(default_factory=dict)
    """Digests of what stood at production keys before, by name."""

    @property
    def facts(self) -> Facts:
        """What is known of the server that is looked at."""
        return self.legacy if self.direction == "from" else self.production

    def way(self, *, in_parts: bool) -> str:
        """Return the operation by which objects are written."""
        if in_parts:
            return "CreateMultipartUpload"
        return "CopyObject" if self.direction == "within" else "PutObject"

    def can_write(self, *, in_parts: bool) -> bool:
        """Return whether the production server has the operations that this way of travelling needs."""
        if self.direction != "within":
            return True
        return self.production.copies_parts if in_parts else self.production.copies_objects

    def plant(self, check: str, name: str, body: bytes | None, **properties: Any) -> None:
        """Add a row, and the legacy object that it points at unless that is not to be there: None."""
        row_id = str(1 + sum(map(len, self.planted.values())))
        if body is None:
            self.migration.add_row(row_id, FROM + name)
        else:
            self.migration.add(row_id, name, body, **properties)
        self.planted.setdefault(check, {})[row_id] = name

    def work(self) -> None:
        """Enqueue and let the worker that is running finish all of it."""
        self.migration.enqueue(40)
        self.migration.wait_until_done()

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of rowferry to its end."""
        return self.migration.run(*arguments, **{**self.migration.environment, **environment})

    # What the checks ask

    def count_parts(self, key: str) -> int | None:
        """Return how many parts the production server has of an open upload; None where none is open.

        Swift lists an upload for a while after its end.
        """
        side = self.migration.production
        for upload in side.client.list_multipart_uploads(Bucket=side.bucket).get("Uploads", []):
            with suppress(ClientError):
                if upload["Key"] == key:
                    named = {"Bucket": side.bucket, "Key": key, "UploadId": upload["UploadId"]}
                    return len(side.client.list_parts(**named).get("Parts", []))
        return None

    def hold(self, condition: object, words: str) -> None:
        """Raise Wrong unless the condition holds."""
        if not condition:
            raise Wrong(words)

    def hold_moved(self, row_id: str, name: str) -> None:
        """Raise Wrong unless the row names the production key and the object there holds the legacy one's bytes."""
        found = self.migration.rows().get(row_id)
        if found != TO + name:
            raise Wrong(f"the row of {name!r} names {found!r}: {self.explain(row_id)}")
        stands = digest(self.migration.production.read(TO + name))
        self.hold(stands == digest(self.migration.bodies[row_id]), f"the object of {name!r} is another: {stands}")

    def explain(self, row_id: str) -> str:
        failures = [each for each in self.migration.failures() if each["entry_id"] == row_id]
        return (
            "; ".join(f"{each['outcome']} {each['reason']} {each['error']}" for each in failures) or "no failure of it"
        )


@contextmanager
def make_environment(
    direction: Direction, legacy: tuple[S3Server, Facts], production: tuple[S3Server, Facts], databases: DatabaseServers
) -> Iterator[Environment]:
    """Yield a migration without entries between two running servers, with buckets and a database of its own."""
    with ExitStack() as until:
        folder = Path(until.enter_context(TemporaryDirectory(prefix="rowferry-conformance-")))
        binaries = next(iter(find_installations().values()))
        dsn = until.enter_context(databases.fresh_database(binaries))
        accesses = [until.enter_context(closing(S3Access(one))) for one in dict.fromkeys((legacy[0], production[0]))]
        sides = [make_buckets(access) for access in accesses]
        migration = until.enter_context(closing(Migration(dsn, sides[0], sides[-1], folder)))
        migration.plan["migration"] |= {"multipart_threshold_bytes": PART_BYTES, "max_attempts": 3}
        until.enter_context(patch.dict(os.environ, migration.environment))
        migration.write_plan()
        yield Environment(direction, legacy[1], production[1], migration)
