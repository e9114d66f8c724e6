"""The buckets of a bench: the bucket `legacy` holds the same object under every key that ends in .png."""

import random

from rowferry_lab.servers.fake_s3.store import Bucket, Store, StoredObject, make_object

BLOCK_BYTES = 1_000_003
"""The bytes of a bench repeat after so many: a prime number, so that parts of an object differ."""


class UniformBucket(Bucket):
    """A bucket whose keys hold one object."""

    def __init__(self, size: int, listed: int) -> None:
        """Make the object. A listing shows so many keys of `name_key`."""
        super().__init__()
        block = random.Random(1).randbytes(BLOCK_BYTES)  # noqa: S311 - to be repeatable, not to be secret
        self._same = make_object((block * -(-size // BLOCK_BYTES))[:size], {"content-type": "image/png"})
        self._listed = listed

    def find(self, key: str) -> StoredObject | None:
        """Return the object that was written under the key, else the one that is expected there."""
        return self.objects.get(key) or self.expect(key)

    def expect(self, key: str) -> StoredObject | None:
        """Return the object that a bench has under this key, in both buckets; None where it does not end in .png."""
        return self._same if key.endswith(".png") else None

    def keys(self) -> list[str]:
        """Return the keys of `name_key` and those that were written."""
        return [*{*map(name_key, range(1, self._listed + 1)), *self.objects}]


def name_key(number: int) -> str:
    """Return a key of a uniform bucket, by its number from 1; the keys sort by number."""
    return f"image/{number:09}.png"


def make_uniform_store(size: int, listed: int = 0) -> Store:
    """Return a store with a bucket `legacy` full of objects of this size, and an empty bucket `production`."""
    legacy = UniformBucket(size, listed)
    store = Store(legacy.expect)
    store.buckets = {"legacy": legacy, "production": Bucket()}
    return store
