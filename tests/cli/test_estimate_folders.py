"""The requests that `rowferry estimate` expects of rows which name folders are those that a worker sends."""

from collections import Counter
from collections.abc import Callable

import pytest

from rowferry_lab.servers.fake_s3.store import Upload, make_object
from support.entries.estimates import estimate
from support.entries.estimating import FakeMigration, fake_migration
from support.entries.migration import Migration
from support.entries.runs import Runs

LARGE = make_object(bytes(6 * 1024**2))


def count_sent(found: FakeMigration) -> Counter[tuple[str, str]]:
    """Return what a worker sends for all rows, but for its look at the buckets."""
    found.migration.enqueue()
    with found.counting() as sent:
        found.migration.work(parallel=1)
    assert set(found.migration.counts()) == {"migrated"}
    return Counter({one: number for one, number in sent.items() if one[1] != "HeadBucket"})


def read_requests(found: FakeMigration) -> dict[tuple[str, str], int]:
    requests = estimate(found.migration)["requests"]
    sides = ("legacy", "production")
    return {(side, name): number for side in sides for name, number in requests[side].items() if number}


def add_uploaded(found: FakeMigration, run: str, name: str) -> None:
    """Add an artifact that was uploaded in parts, so that its ETag is no digest."""
    bucket, key = found.migration.legacy.bucket, f"0/{run}/artifacts/{name}"
    uploaded = Upload(bucket, key, {}, {}, parts={1: LARGE}).assemble([1])
    found.legacy.fake.store.bucket(bucket).put(key, uploaded)


@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
@pytest.mark.parametrize("kind", ["small", "uploaded in parts", "immutable"])
def test_an_estimate_counts_what_a_worker_sends_for_folders(
    make_migration: Callable[..., Migration], server_side: bool, kind: str
) -> None:
    with fake_migration(make_migration, server_side=server_side) as found:
        runs = Runs(found.migration)
        for run in range(12):
            runs.add(f"r{run}", [] if kind == "uploaded in parts" else ["MLmodel", "model/a", "model/b"])
            if kind == "uploaded in parts":
                add_uploaded(found, f"r{run}", "model.bin")
        if kind == "immutable":
            found.migration.plan["legacy"]["immutable"] = True
        expected = read_requests(found)
        assert expected == count_sent(found)
