"""Another writer, which comes between a worker's look at a production key and its write there, on a real server."""

from collections.abc import Iterable

from support.s3.objects import ObjectSide
from support.s3.request_log import LoggedRequest


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
