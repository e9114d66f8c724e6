"""The buckets of a bench: the bucket `legacy` holds one of a few objects under every key that ends in .png."""

import random
from collections.abc import Sequence
from zlib import crc32

from rowferry_lab.servers.fake_s3.store import Bucket, Store, StoredObject, make_object

BLOCK_BYTES = 1_000_003
"""The bytes of a bench repeat after so many: a prime number, so that parts of an object differ."""


class UniformObjects:
    """A few objects for all keys: the last name in a key decides which, so that both buckets of a bench agree."""

    def __init__(self, sizes: Sequence[int], seed: int = 1) -> None:
        """Make an object of each size; a size that stands there twice is as often."""
        block = random.Random(seed).randbytes(BLOCK_BYTES)  # noqa: S311 - to be repeatable, not to be secret
        made = {size: make_object(_repeat(block, size), {"content-type": "image/png"}) for size in set(sizes)}
        self._objects = [made[size] for size in sizes]

    def find(self, key: str) -> StoredObject | None:
        """Return the object that is expected under a key; None where the key does not end in .png."""
        if not key.endswith(".png"):
            return None
        if len(self._objects) == 1:
            return self._objects[0]
        return self._objects[crc32(key.rpartition("/")[2].encode()) % len(self._objects)]


def _repeat(block: bytes, size: int) -> bytes:
    return (block * -(-size // len(block)))[:size]


class UniformBucket(Bucket):
    """A bucket for benches: every key that ends in .png holds one of the same objects; a listing shows `listed`."""

    def __init__(self, objects: UniformObjects, listed: int) -> None:
        """Take the objects."""
        super().__init__()
        self._same = objects
        self._listed = listed

    def find(self, key: str) -> StoredObject | None:
        """Return the object of the key, else the one that is expected there."""
        return self.objects.get(key) or self._same.find(key)

    def keys(self) -> list[str]:
        """Return the keys of `name_key` and those that were written."""
        return [*{*map(name_key, range(1, self._listed + 1)), *self.objects}]


def name_key(number: int) -> str:
    """Return a key of a uniform bucket, by its number from 1; the keys sort by number."""
    return f"image/{number:09}.png"


def make_uniform_store(sizes: Sequence[int], listed: int = 0) -> Store:
    """Return a store with a bucket `legacy` full of objects of these sizes, and an empty bucket `production`."""
    objects = UniformObjects(sizes)
    store = Store(objects.find)
    store.buckets = {"legacy": UniformBucket(objects, listed), "production": Bucket()}
    return store
