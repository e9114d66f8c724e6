"""The requests that `rowferry estimate` expects of rows which name folders are those that a worker sends."""

from collections import Counter
from collections.abc import Callable

import pytest

from support.entries.estimates import estimate
from support.entries.estimating import FakeMigration, fake_migration
from support.entries.migration import Migration
from support.entries.runs import Runs

LARGE = bytes(6 * 1024**2)


def count_sent(found: FakeMigration) -> Counter[tuple[str, str]]:
    """Return what a worker sends for all rows, but for its look at the buckets."""
    found.migration.enqueue()
    with found.counting() as sent:
        found.migration.work(parallel=1)
    assert set(found.migration.counts()) == {"migrated"}
    return Counter({one: number for one, number in sent.items() if one[1] != "HeadBucket"})


def read_requests(found: FakeMigration) -> dict[tuple[str, str], int]:
    requests = estimate(found.migration, within="5s")["requests"]
    sides = ("legacy", "production")
    return {(side, name): number for side in sides for name, number in requests[side].items() if number}


def add_uploaded(runs: Runs, run: str, name: str) -> None:
    """Add an artifact that was uploaded in parts, so that its ETag is no digest."""
    client, bucket = runs.migration.legacy.client, runs.migration.legacy.bucket
    place = {"Bucket": bucket, "Key": f"0/{run}/artifacts/{name}"}
    upload = client.create_multipart_upload(**place)["UploadId"]
    part = client.upload_part(**place, UploadId=upload, PartNumber=1, Body=LARGE)
    client.complete_multipart_upload(
        **place, UploadId=upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    )


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
                add_uploaded(runs, f"r{run}", "model.bin")
        if kind == "immutable":
            found.migration.plan["legacy"]["immutable"] = True
        expected = read_requests(found)
        assert expected == count_sent(found)
