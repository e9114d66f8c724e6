"""A migration between fake S3 servers that a test can slow down, throttle and count the requests of."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rowferry_lab.servers.fake_s3.http import Request
from support.entries.migration import Migration
from support.processes.cli import assert_went_well
from support.s3.buckets import fresh_buckets
from support.s3.deviations import Deviations
from support.s3.fake_s3 import FakeAddress, running_fakes

Make = Callable[..., Migration]


@dataclass
class FakeMigration:
    """A migration, the servers of both sides (one object where they are one), and the requests to them."""

    migration: Migration
    legacy: FakeAddress
    production: FakeAddress

    @contextmanager
    def counting(self) -> Iterator[Counter[tuple[str, str]]]:
        """Count the requests within the block, by side and operation."""
        counts: Counter[tuple[str, str]] = Counter()

        def note(request: Request) -> None:
            side = "legacy" if request.bucket == self.migration.legacy.bucket else "production"
            counts[side, request.operation] += 1

        for address in (self.legacy, self.production):
            address.fake.before = note
        try:
            yield counts
        finally:
            for address in (self.legacy, self.production):
                address.fake.before = None


@contextmanager
def fake_migration(make: Make, deviations: Deviations | None = None, *, server_side: bool) -> Iterator[FakeMigration]:
    """Yield an empty migration: within one server, or between two that share their buckets."""
    deviations = deviations or Deviations()
    with ExitStack() as until:
        addresses = until.enter_context(running_fakes(*[deviations] * (1 if server_side else 2)))
        buckets = until.enter_context(fresh_buckets(addresses[0]))
        other = replace(buckets, server=addresses[-1])
        yield FakeMigration(make(buckets, other), addresses[0], addresses[-1])


METHODS = {"HeadObject": "HEAD", "CreateMultipartUpload": "POST", "CompleteMultipartUpload": "POST"}


def estimate(migration: Migration, *arguments: str) -> dict[str, Any]:
    """Return the document of an estimate."""
    migration.write_plan()
    done = migration.run_here("estimate", "--json", *arguments)
    assert_went_well(done)
    return json.loads(done.stdout)
