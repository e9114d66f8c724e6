"""The pace of a real worker on servers that are slow by chance, away for a moment, or bounded."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from itertools import accumulate, chain, dropwhile
from time import monotonic, sleep
from typing import Any

import pytest

from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.uniform import make_uniform_store
from rowferry_lab.servers.s3_servers import FakeS3Server
from rowferry_worker.pacing.in_flight import START
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.processes.scrape import scrape, served_port, sum_of
from support.s3.buckets import Buckets, S3Access
from support.s3.deviations import Deviations
from support.s3.fake_s3 import FakeAddress, running_fakes

MakeMigration = Callable[..., Migration]
LIMIT = "rowferry_objects_in_flight_limit"
SOON = timedelta(seconds=60)
"""Within this all is done that takes seconds on a machine with little else to do."""


@pytest.fixture
def server() -> Iterator[FakeS3Server]:
    """The fake, with an object under every key of the bucket `legacy`."""
    with FakeS3Server("--body-bytes=2000") as server:
        yield server


@contextmanager
def enqueued(make_migration: MakeMigration, server: FakeS3Server, entries: int) -> Iterator[Migration]:
    """Yield a migration of so many entries from `legacy` to `production`."""
    with closing(S3Access(server)) as access:
        buckets = Buckets(server, access, "legacy", "production")
        migration = make_migration(buckets, buckets)
        migration.add_legacy(range(1, entries + 1)).write_plan().enqueue()
        yield migration


def sample_until_done(migration: Migration, port: int, name: str, **labels: str) -> list[float]:
    """Return what a metric of the worker said, from its first value on, until no batch waits any more."""
    samples: list[float] = []

    def is_done() -> bool:
        samples.append(sum_of(scrape(port), name, **labels))
        sleep(0.05)
        return "INIT" not in migration.statuses()

    wait_for(is_done, deadline=SOON)
    return list(dropwhile(lambda sample: not sample, samples))


def check_all_moved(migration: Migration, entries: int) -> None:
    """An object that was copied before its response was lost counts as kept."""
    counts = migration.counts()
    assert counts.keys() <= {"migrated", "kept"}
    assert sum(counts.values()) == entries
    assert {key.startswith(TO) for key in migration.rows().values() if key} == {True}
    assert len(migration.production.listing()) == entries
    migration.check_balance()


def test_refused_connections_cost_little_and_the_limit_rises_again(
    make_migration: MakeMigration, server: FakeS3Server
) -> None:
    with enqueued(make_migration, server, 3000) as migration:
        server.configure("latency", seconds=0.2)
        with migration.workers(1, "--metrics-port=0") as (worker,):
            port = served_port(worker)
            wait_for(lambda: server.read_stats()["objects"] >= 400, deadline=SOON)
            server.configure("outage", seconds=3)
            limits = sample_until_done(migration, port, LIMIT)
        server.configure("latency")
        assert limits[-1] > max(START, min(limits))
        # A connection that breaks while the server answers others counts, once; a server that is away does not.
        assert set(migration.verdicts()) <= {"DONE", "RELEASED", "RETRY"}
        assert max(batch["attempts"] for batch in migration.batches()) <= 2
        check_all_moved(migration, 3000)


def note_copies(server: FakeAddress) -> dict[str, list[tuple[float, bool]]]:
    """Return, by key, when each copy was asked for and whether it was refused; filled as they come."""
    seen: dict[str, list[tuple[float, bool]]] = {}
    answer = server.fake.answer

    def note(request: Request, now: float) -> Any:
        response = answer(request, now)
        if request.operation == "CopyObject":
            seen.setdefault(request.key, []).append((monotonic(), response.status == 503))
        return response

    server.fake.answer = note
    return seen


def test_a_server_that_counts_what_it_refuses_is_not_asked_in_vain(make_migration: MakeMigration) -> None:
    """A worker that only cuts its rate is refused most of what it sends: that keeps the server shut.

    How much it is refused before it knows the bound is a matter of chance: the second half of the copies tells more.
    """
    with (
        running_fakes(Deviations(), store=make_uniform_store(2000)) as (server,),
        enqueued(make_migration, server, 400) as migration,
    ):
        server.configure("limits", writes_per_second=40, burst_seconds=1, counts_refused=True)
        server.configure("latency", seconds=0.05)
        seen = note_copies(server)
        with migration.workers(1):
            migration.wait_until_done()
        check_all_moved(migration, 400)
    in_order = [was_refused for _, was_refused in sorted(chain.from_iterable(seen.values()))]
    assert 0 < sum(in_order) < 300
    copied = accumulate(not was_refused for was_refused in in_order)
    refused_later = sum(was_refused for was_refused, before in zip(in_order, copied, strict=True) if before >= 200)
    assert refused_later < 25
