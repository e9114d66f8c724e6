"""Another writer between look and write, at real servers that honour the condition: nothing of it is overwritten.

A process knows nothing of its server at first, so each round has one of its own. `make races` has 500 races of each.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.s3.buckets import fresh_buckets
from support.s3.objects import ObjectSide
from support.s3.request_log import LoggedRequest, logged
from support.s3.servers import running_server


class OtherWriter:
    """A listener for `RequestLog.telling`: a worker's write waits at the proxy while other bytes are put at its key."""

    def __init__(self, production: ObjectSide, keys: Iterable[str]) -> None:
        self._production = production
        self._keys = set(keys)
        self.written: dict[str, bytes] = {}
        """What was put before the worker's own write came through, by key."""

    def __call__(self, seen: LoggedRequest) -> None:
        """Put other bytes at the key of the first write that a worker sends to it."""
        key = seen.key
        if seen.bucket == self._production.bucket and key in self._keys - self.written.keys() and puts_object(seen):
            body = f"another writer's {key}".encode()
            self._production.put(key, body)
            self.written[key] = body

    def find_overwritten(self) -> list[str]:
        """Return the keys at which the other writer's bytes do not stand any more."""
        return [key for key, body in self.written.items() if self._production.read(key) != body]


def puts_object(seen: LoggedRequest) -> bool:
    """Return whether a request puts an object in its place: PutObject, CopyObject or CompleteMultipartUpload."""
    return seen.writes_object or (seen.method == "POST" and "uploadId=" in seen.query)


ROUND, LEFT_ALONE = 10, 2
"""Objects of one process: so many that are raced for, and so many from which it can learn what the server honours."""
ROUNDS = int(os.environ.get("ROWFERRY_RACES", "30")) // ROUND
PART_BYTES = 5 * 1024 * 1024
FORMS: dict[str, dict[str, Any]] = {
    "stream": {"transfer": "stream"},
    "parts": {"transfer": "stream", "multipart_threshold_bytes": PART_BYTES},
    "copy": {},
}
CASES = [
    pytest.param(server, form, id=f"{server}-{form}", marks=pytest.mark.xdist_group(server))
    for server, form in [("seaweedfs", "stream"), ("seaweedfs", "copy"), ("minio", "stream"), ("minio", "parts")]
]


@pytest.mark.soak
@pytest.mark.timeout(100 + 100 * ROUNDS)
@pytest.mark.parametrize(("server_name", "form"), CASES)
def test_what_another_writer_puts_between_look_and_write_stays_from_the_first_object_on(
    server_name: str, form: str, make_migration: Callable[..., Migration]
) -> None:
    with running_server(server_name) as server, logged(server.endpoint_url) as log, fresh_buckets(server) as buckets:
        migration = make_migration(buckets, buckets)
        migration.plan["migration"] |= FORMS[form]
        migration.reach_through(log.endpoint_url)
        raced: list[str] = []
        overwritten: list[str] = []
        for number in range(ROUNDS):
            writer = race(migration, number, PART_BYTES + 1 if form == "parts" else 100, log.telling)
            raced += writer.written
            overwritten += writer.find_overwritten()
        assert (len(overwritten), len(raced)) == (0, ROUNDS * ROUND)
        assert migration.counts() == {"conflict": ROUNDS * ROUND, "migrated": ROUNDS * LEFT_ALONE}
        migration.audit(legacy_left=[key.removeprefix(TO) for key in raced])


def race(
    migration: Migration, number: int, size_bytes: int, telling: Callable[[OtherWriter], AbstractContextManager[None]]
) -> OtherWriter:
    """Have a new worker process copy the objects of a round; return the writer that was there before it."""
    ids = range(number * (ROUND + LEFT_ALONE), (number + 1) * (ROUND + LEFT_ALONE))
    for row_id in ids:
        migration.add(row_id, str(row_id), os.urandom(size_bytes))
    migration.enqueue()
    writer = OtherWriter(migration.production, {f"{TO}{row_id}" for row_id in ids[:ROUND]})
    with telling(writer), migration.workers(1, "--until-empty") as (worker,):
        worker.wait()
    return writer
