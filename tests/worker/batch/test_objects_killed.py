"""Workers are killed while they list and copy: every object is copied once, and the counts balance."""

import math
from collections.abc import Callable, Iterator

import pytest

from rowferry_lab.servers.fake_s3 import api
from support.entries.listed_objects import check_ranges, name_objects, put_many
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.s3.buckets import fresh_buckets
from support.s3.deviations import Deviations
from support.s3.fake_s3 import FakeAddress, running_fakes

OBJECTS = 2_000
KILLED_AFTER = (1, 4, 16)
"""Attempts that have begun when all workers are killed, round by round."""
PAGE_KEYS = 10
"""So that a listing ends after 250 keys."""


@pytest.fixture
def fake_migration(
    make_migration: Callable[..., Migration], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Migration, FakeAddress]]:
    monkeypatch.setattr(api, "PAGE_KEYS", PAGE_KEYS)
    with running_fakes(Deviations()) as (server,), fresh_buckets(server) as buckets:
        yield name_objects(make_migration(buckets, buckets)), server


@pytest.mark.soak
def test_every_object_is_copied_once_however_often_workers_are_killed(
    fake_migration: tuple[Migration, FakeAddress],
) -> None:
    """They are killed after some attempts have begun, at listings and ranges alike."""
    migration, server = fake_migration
    names = put_many(migration, server, OBJECTS)
    server.configure("latency", seconds=0.01)
    migration.enqueue(40)
    for more in (*KILLED_AFTER, math.inf):
        enough = len(migration.attempts()) + more
        with migration.workers(2, "--until-empty", "--parallel", "16") as workers:
            wait_for(
                lambda workers=workers, enough=enough: (
                    len(migration.attempts()) >= enough or all(worker.process.poll() is not None for worker in workers)
                )
            )
    server.configure("latency", seconds=0)
    interrupted = {attempt["batch_id"] for attempt in migration.attempts() if attempt["verdict"] is None}
    killed = {batch["payload"]["objects"] for batch in migration.batches() if batch["id"] in interrupted}
    assert killed == {"listing", "range"}
    assert migration.statuses() == {"DONE"}
    check_ranges(migration, names)
    assert sum(migration.counts("migrate").values()) == OBJECTS
    assert set(migration.production.listing()) == {f"v/{name}" for name in names}
    migration.check_balance()
