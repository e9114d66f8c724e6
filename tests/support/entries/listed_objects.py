"""Objects without rows to test with, and an auditor of what became of them."""

from bisect import bisect_right
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from rowferry_lab.servers.fake_s3.store import make_object
from support.entries.migration import Migration
from support.s3.fake_s3 import FakeAddress

PREFIX, TO = "variants/", "v/"


def name_objects(migration: Migration, prefix: str = PREFIX, to: str | None = TO) -> Migration:
    """Let the plan move the objects below a prefix, and no table."""
    migration.plan["entries"] = []
    migration.plan["objects"] = [{"prefix": prefix, **({} if to is None else {"to": to})}]
    return migration


def put_objects(migration: Migration, names: Iterable[str], prefix: str = PREFIX) -> None:
    """Write legacy objects, the body of each made of its name."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: migration.legacy.put(prefix + name, f"body of {name}".encode()), names))


def put_many(migration: Migration, server: FakeAddress, count: int) -> list[str]:
    """Write legacy objects straight into the store of the fake server, and return their names."""
    bucket = server.fake.store.bucket(migration.legacy.bucket)
    names = [f"{number % 97:02}/{number}.png" for number in range(count)]
    for name in names:
        bucket.put(PREFIX + name, make_object(f"body of {name}".encode()))
    return names


def check_ranges(migration: Migration, names: Iterable[str], prefix: str = PREFIX) -> None:
    """Hold the ranges against the keys: each key in just one of them."""
    keys = sorted((prefix + name for name in names), key=str.encode)
    found = ranges(migration)
    assert all(one[1].encode() < other[0].encode() for one, other in pairwise(found)), "ranges overlap"
    starts = [first.encode() for first, _ in found]
    outside = [key for key in keys if key > found[bisect_right(starts, key.encode()) - 1][1]]
    assert outside == []


def ranges(migration: Migration, queue: str = "migrate") -> list[tuple[str, str]]:
    """Return the first and the last key of each range in their order, but for those that were halved."""
    found = [batch["payload"] for batch in migration.batches() if batch["queue_name"] == queue and batch["entry_count"]]
    return sorted((each["first"], each["last"]) for each in found if each["objects"] == "range")


def check_copies(migration: Migration, names: Iterable[str], prefix: str = PREFIX, to: str = TO) -> None:
    """Hold the production bucket against these names: an equal object for each, and no other."""
    expected = {to + name: f"body of {name}".encode() for name in names}
    assert set(migration.production.listing()) == set(expected)
    with ThreadPoolExecutor(8) as pool:
        bodies = dict(zip(expected, pool.map(migration.production.read, expected), strict=True))
    assert bodies == expected
    migration.check_balance()
