"""The buckets, objects and uploads of the fake S3 server, kept in memory."""

import hashlib
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import cached_property

from msgspec import Struct


class S3Error(Exception):
    """A request that is answered with this HTTP status and this code of S3, its arguments."""


class StoredObject(Struct, frozen=True, dict=True):
    """An object, or a part of an upload. `headers` have lower-case names; `etag` is unquoted."""

    body: bytes
    etag: str
    size: int
    headers: Mapping[str, str]
    tags: Mapping[str, str]
    written: float
    """Seconds since 1970."""

    @cached_property
    def description(self) -> bytes:
        """The header lines that describe the object in the response to a GET or HEAD."""
        lines = [
            f'etag: "{self.etag}"',
            f"last-modified: {formatdate(self.written, usegmt=True)}",
            "accept-ranges: bytes",
            *(f"{name}: {value}" for name, value in self.headers.items()),
            *([f"x-amz-tagging-count: {len(self.tags)}"] if self.tags else []),
        ]
        return "".join(f"{line}\r\n" for line in lines).encode("latin-1")

    def copy(self, headers: Mapping[str, str], tags: Mapping[str, str]) -> "StoredObject":
        """Return an object of the same bytes, written now."""
        return StoredObject(self.body, self.etag, self.size, headers, tags, time.time())


NOTHING: Mapping[str, str] = {}


def make_object(body: bytes, headers: Mapping[str, str] = NOTHING, tags: Mapping[str, str] = NOTHING) -> StoredObject:
    """Return an object, written now, whose ETag is the MD5 of its bytes."""
    return StoredObject(body, compute_md5(body), len(body), headers, tags, time.time())


def compute_md5(body: bytes) -> str:
    """Return the MD5 in hexadecimal."""
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


@dataclass
class Upload:
    """An open multipart upload; `parts` by number."""

    bucket: str
    key: str
    headers: Mapping[str, str]
    tags: Mapping[str, str]
    parts: dict[int, StoredObject] = field(default_factory=dict[int, StoredObject])

    def assemble(self, numbers: list[int]) -> StoredObject:
        """Return the object made of these parts, with the ETag that S3 gives. Raises S3Error when one is not there."""
        if not numbers or any(number not in self.parts for number in numbers):
            raise S3Error(400, "InvalidPart")
        parts = [self.parts[number] for number in numbers]
        body = b"".join(part.body for part in parts)
        etag = f"{compute_md5(b''.join(bytes.fromhex(part.etag) for part in parts))}-{len(parts)}"
        return StoredObject(body, etag, len(body), self.headers, self.tags, time.time())


class Bucket:
    """The objects of one bucket."""

    def __init__(self) -> None:
        """Begin empty."""
        self.objects: dict[str, StoredObject] = {}
        self._sorted: list[str] | None = None
        """The keys in the order of a listing, since the last change."""

    def find(self, key: str) -> StoredObject | None:
        """Return an object; None when there is none."""
        return self.objects.get(key)

    def put(self, key: str, stored: StoredObject) -> None:
        """Write an object."""
        self.objects[key] = stored
        self._sorted = None

    def remove(self, key: str) -> None:
        """Delete an object, or nothing where there is none."""
        self.objects.pop(key, None)
        self._sorted = None

    def keys(self) -> list[str]:
        """Return the keys that a listing shows."""
        return list(self.objects)

    def walk(self, prefix: str, after: str) -> Iterator[tuple[str, StoredObject]]:
        """Yield the objects whose keys begin with `prefix` and come after `after`, in the order of their bytes."""
        if self._sorted is None:
            self._sorted = sorted(self.keys(), key=str.encode)
        for key in self._sorted[bisect_right(self._sorted, after.encode(), key=str.encode) :]:
            found = self.find(key) if key.startswith(prefix) else None
            if found is not None:
                yield key, found


class Store:
    """All buckets, and the open multipart uploads."""

    def __init__(self, expect: Callable[[str], StoredObject | None] = lambda _key: None) -> None:
        """Begin empty. `expect`: what a bench writes under a key; the same bytes are kept and hashed once."""
        self.expect = expect
        self.buckets: dict[str, Bucket] = {}
        self.uploads: dict[str, Upload] = {}

    def bucket(self, name: str) -> Bucket:
        """Return a bucket. Raises S3Error when there is none of this name."""
        if name not in self.buckets:
            raise S3Error(404, "NoSuchBucket")
        return self.buckets[name]

    def read(self, bucket: str, key: str) -> StoredObject:
        """Return an object. Raises S3Error when there is none."""
        found = self.bucket(bucket).find(key)
        if found is None:
            raise S3Error(404, "NoSuchKey")
        return found

    def upload(self, upload_id: str) -> Upload:
        """Return an open upload. Raises S3Error when it was completed or aborted."""
        if upload_id not in self.uploads:
            raise S3Error(404, "NoSuchUpload")
        return self.uploads[upload_id]
