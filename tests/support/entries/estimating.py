"""A migration between fake S3 servers that a test can slow down, throttle and count the requests of."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from rowferry_lab.servers.fake_s3.http import Request
from support.entries.migration import Migration
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
        with self._noting(lambda side, request: counts.update([(side, request.operation)])):
            yield counts

    @contextmanager
    def counting_by_key(self) -> Iterator[Mapping[str, Counter[tuple[str, str]]]]:
        """The same, by the key that is asked for."""
        counts: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        with self._noting(lambda side, request: counts[request.key].update([(side, request.operation)])):
            yield counts

    @contextmanager
    def _noting(self, note_from: Callable[[str, Request], None]) -> Iterator[None]:
        """Tell of each request within the block, and of its side."""

        def note(request: Request) -> None:
            note_from("legacy" if request.bucket == self.migration.legacy.bucket else "production", request)

        for address in (self.legacy, self.production):
            address.fake.before = note
        try:
            yield
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
