"""A migration of large objects by the queue `parts`, and what its servers were asked."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, Literal, Self

from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration
from support.processes.processes import DEADLINE, wait_for
from support.processes.small_parts import PART_BYTES, small_parts
from support.s3.bodies import make_body
from support.s3.buckets import Buckets, fresh_buckets
from support.s3.deviations import Deviations
from support.s3.fake_s3 import running_fakes
from support.s3.request_log import LoggedRequest, RequestLog, logged

REAL_PART_BYTES = 5 * 1024 * 1024
"""The smallest part of real servers. Source: Amazon S3 User Guide, "Multipart upload limits"."""
REAL_PARTS = 3
PARTS = 12
BODY = make_body(PARTS * PART_BYTES - 1000)
NAME = "large.bin"
PART_NUMBER = re.compile(r"partNumber=(\d+)")


@cache
def real_body() -> bytes:
    """Return the body of an object of REAL_PARTS parts."""
    return make_body(REAL_PARTS * REAL_PART_BYTES - 1000)


MakeMigration = Callable[..., Migration]
Change = Callable[[bytes], bytes]


class Site:
    """A migration whose workers reach their servers through a log of requests."""

    def __init__(self, migration: Migration, log: RequestLog) -> None:
        self.migration, self.log = migration, log

    def enqueue(self) -> None:
        """Put the entries in the queue `parts`."""
        self.migration.enqueue(queue="parts")

    def given(self) -> Self:
        """Add a large object and its row, and put it in the queue."""
        self.migration.add(1, NAME, BODY)
        self.enqueue()
        return self

    def work(self, *, again: int = 0) -> None:
        """Work in this process on all that is due, of `parts` and what follows it; `again`: so often on what waits."""
        self.migration.work("parts", "migrate")
        self.migration.work_again("parts", "migrate", times=again)

    def take_turns(self, count: int = 1) -> None:
        """Work on so many batches of `parts`."""
        with self.migration.at_work(queues=["parts"]) as take_turn:
            for _ in range(count):
                take_turn()

    def recorded(self) -> set[int]:
        """Return the numbers of the parts that are recorded as sent."""
        return {row["number"] for row in self.migration.execute("select number from rowferry.upload_part")}

    def sent(self) -> Counter[int]:
        """Return how often the bytes of each part were sent to the server."""
        return self._count(lambda seen: "x-amz-copy-source" not in seen.headers)

    def copied(self) -> Counter[int]:
        """Return how often each part was copied by the server."""
        return self._count(lambda seen: "x-amz-copy-source" in seen.headers)

    def _count(self, matches: Callable[[LoggedRequest], bool]) -> Counter[int]:
        seen = [request for request in self.log.seen if request.method == "PUT" and matches(request)]
        return Counter(int(found[1]) for request in seen if (found := PART_NUMBER.search(request.query)))

    def begun(self) -> int:
        """Return how many uploads were begun."""
        return sum(map(begins, self.log.seen))

    def part_batches(self) -> list[dict[str, Any]]:
        return [batch for batch in self.migration.batches() if "upload" in batch["payload"]]

    def object_batches(self) -> list[dict[str, Any]]:
        """Return the batches of `parts` that are of objects."""
        found = self.migration.execute("select * from rowferry.batch_queue where queue_name = 'parts' order by id")
        return [batch for batch in found if "upload" not in batch["payload"]]

    def check_arrived(self, body: bytes = BODY, name: str = NAME) -> None:
        """Hold that the object stands, byte for byte, and that no upload is left over."""
        assert self.migration.production.read(TO + name) == body
        assert self.migration.production.open_uploads() == []
        assert self.migration.execute("select * from rowferry.upload") == []
        self.migration.check_balance()

    def check_moved(self, body: bytes = BODY) -> None:
        """Hold the same, and that the row has followed."""
        self.check_arrived(body)
        self.migration.audit()


@contextmanager
def site_on(
    make_migration: MakeMigration, buckets: Buckets, *, transfer: str = "stream", **settings: Any
) -> Iterator[Site]:
    """Yield a migration between two buckets of a server, in parts as large as S3 demands.

    Objects of PART_BYTES and more are copied by parts; the rows follow by `migrate`, unless told otherwise.
    """
    with logged(buckets.server.endpoint_url) as log:
        migration = make_migration(buckets, buckets)
        own = {"least_bytes": PART_BYTES, "batch_parts": 4, "then": ["migrate"], **settings}
        migration.plan["queue"] = {"parts": own}
        migration.plan["migration"]["transfer"] = transfer
        migration.reach_through(log.endpoint_url)
        yield Site(migration, log)


@contextmanager
def site_on_fake(make_migration: MakeMigration, deviations: Deviations | None = None, **more: Any) -> Iterator[Site]:
    """Yield a migration between two buckets of a fake server that behaves like this, in parts of PART_BYTES."""
    with ExitStack() as until:
        plain, fake = until.enter_context(running_fakes(Deviations(), deviations or Deviations()))
        del plain
        buckets = until.enter_context(fresh_buckets(fake))
        site = until.enter_context(site_on(make_migration, buckets, **more))
        until.enter_context(small_parts(site.migration.folder))
        yield site


def sends_part(*numbers: int) -> Callable[[LoggedRequest], bool]:
    """Return what matches the sending of these parts."""

    def matches(seen: LoggedRequest) -> bool:
        found = PART_NUMBER.search(seen.query)
        return seen.method == "PUT" and found is not None and int(found[1]) in numbers

    return matches


def is_completion(seen: LoggedRequest) -> bool:
    return seen.method == "POST" and seen.query.startswith("uploadId=")


def begins(seen: LoggedRequest) -> bool:
    return seen.method == "POST" and seen.query in {"uploads", "uploads="}


def kill_when(
    site: Site,
    matches: Callable[[LoggedRequest], bool],
    ready: Callable[[], bool],
    where: Literal["request", "answer"] = "request",
) -> None:
    """Kill a worker that is held where a request matches, once all is as it should be."""
    arguments = ("--queue=parts", "--queue=migrate", "--processes=1")
    with site.log.holding(matches, where=where) as held, site.migration.workers(1, *arguments) as (worker,):
        wait_for(lambda: held and ready())
        worker.kill()


def go_on(site: Site) -> None:
    """Let another worker finish, which is in this process, once PostgreSQL knows that the others are dead."""
    site.migration.finish_after_kills("parts", "migrate", deadline=DEADLINE)


def copy_first(site: Site, body: bytes = BODY) -> None:
    site.migration.add(1, NAME, body, ContentType="video/mp4")
    site.enqueue()
    site.work()
    site.check_arrived(body)


def copy_again(site: Site, body: bytes, *, works: bool = True, again: int = 0) -> None:
    """Have the application write the object, and make another pass; or only put that in the queue.

    `again`: how often to work on what waits then.
    """
    site.migration.legacy.put(FROM + NAME, body, ContentType="video/mp4")
    site.migration.bodies["1"] = body
    site.migration.execute("delete from rowferry.batch_queue")
    site.log.seen.clear()
    site.enqueue()
    if works:
        site.work(again=again)


def change_bytes(*places: int) -> Change:
    """Return what changes single bytes."""

    def change(body: bytes) -> bytes:
        changed = bytearray(body)
        for place in places:
            changed[place] ^= 1
        return bytes(changed)

    return change
