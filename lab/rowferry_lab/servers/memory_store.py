"""The objects of the S3 server in memory: really stored, copied and compared, and nothing checked of who asks."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime

KEPT_HEADERS = (
    "content-type",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
)
"""What describes an object and travels with a copy, besides `x-amz-meta-...` and the tags.

rowferry_worker/carriers.py has a list of its own, on purpose: a stand-in must not learn from what it tests.
"""


class Refused(Exception):
    """A request that is answered with an S3 error."""

    def __init__(self, status: int, code: str) -> None:
        """Keep the HTTP status and S3's error code."""
        super().__init__(code)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The bytes of an object and what is said of it."""

    body: bytes
    headers: Mapping[str, str]
    """Names in lower case."""
    tagging: str
    """As the header `x-amz-tagging` has it: `a=1&b=2`."""
    etag: str = field(init=False)
    """The MD5 of the bytes, unquoted."""
    written: datetime = field(init=False)

    def __post_init__(self) -> None:
        """Take the digest and the time."""
        object.__setattr__(self, "etag", hashlib.md5(self.body, usedforsecurity=False).hexdigest())
        object.__setattr__(self, "written", datetime.now(UTC))

    def describe(self) -> dict[str, str]:
        """Return the headers of an answer about the object."""
        facts = {"etag": f'"{self.etag}"', "last-modified": format_datetime(self.written, usegmt=True)}
        if self.tagging:
            facts["x-amz-tagging-count"] = str(self.tagging.count("&") + 1)
        return {**facts, "accept-ranges": "bytes", **self.headers}


class Store:
    """All buckets."""

    def __init__(self) -> None:
        """Begin without any."""
        self._buckets: dict[str, dict[str, StoredObject]] = {}
        self._sorted: dict[str, list[str]] = {}
        """The keys of a bucket in their order, since its last change."""

    def make_bucket(self, name: str) -> None:
        """Make a bucket; one that is there already stays as it is."""
        self._buckets.setdefault(name, {})

    def check_bucket(self, name: str) -> None:
        """Raise Refused unless the bucket is there."""
        self._find_bucket(name)

    def read(self, bucket: str, key: str) -> StoredObject:
        """Return an object. Raises Refused when it is not there."""
        found = self._find_bucket(bucket).get(key)
        if found is None:
            raise Refused(404, "NoSuchKey")
        return found

    def write(self, bucket: str, key: str, stored: StoredObject, *, if_none_match: bool) -> None:
        """Put an object in its place. Raises Refused where one stands and `if_none_match` forbids to replace it."""
        objects = self._find_bucket(bucket)
        if if_none_match and key in objects:
            raise Refused(412, "PreconditionFailed")
        objects[key] = stored
        self._sorted.pop(bucket, None)

    def delete(self, bucket: str, key: str) -> None:
        """Delete an object, or nothing where there is none."""
        self._find_bucket(bucket).pop(key, None)
        self._sorted.pop(bucket, None)

    def walk(self, bucket: str, *, prefix: str, after: str) -> Iterator[tuple[str, StoredObject]]:
        """Yield the objects whose keys begin with `prefix` and come after `after`, in the order of their bytes."""
        objects = self._find_bucket(bucket)
        if bucket not in self._sorted:
            self._sorted[bucket] = sorted(objects, key=str.encode)
        keys = self._sorted[bucket]
        for key in keys[bisect_right(keys, after.encode(), key=str.encode) :]:
            if key.startswith(prefix):
                yield key, objects[key]

    def _find_bucket(self, name: str) -> dict[str, StoredObject]:
        if name not in self._buckets:
            raise Refused(404, "NoSuchBucket")
        return self._buckets[name]
