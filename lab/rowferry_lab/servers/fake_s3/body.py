"""The body of a request to the fake S3 server, as it comes: compared with the bytes that a bench expects, or kept.

A bench sends gigabytes. What is expected is neither copied nor hashed: it is compared where it lies, and its MD5 is
known.
"""

import hashlib
from typing import Any

from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.store import StoredObject


class Body:
    """Takes the pieces of one body."""

    def __init__(self, request: Request, length: int, expected: StoredObject | None, *, keep: bool) -> None:
        """Expect the bytes of an object, or of a part of it; without `keep`, another body is only hashed."""
        self.missing = length
        self.operation = request.operation
        self.request = request
        self._length = length
        self._expected = expected
        self._places = _list_places(request, length, expected)
        self._pieces: list[bytes] = []
        self._hash: Any = None if keep else hashlib.md5(usedforsecurity=False)

    def take(self, piece: memoryview) -> None:
        """Take the next bytes, at most as many as are missing."""
        taken = self._length - self.missing
        self.missing -= len(piece)
        if self._expected is not None and self._places:
            fitting = [place for place in self._places if self._expected.body.startswith(piece, place + taken)]
            if fitting:
                self._places = fitting
                return
            first = self._places.pop()
            self._places.clear()
            self._keep(memoryview(self._expected.body)[first : first + taken])
        self._keep(piece)

    def fill(self) -> Request:
        """Return the request with zeros in place of what is missing."""
        self.take(memoryview(bytes(self.missing)))
        return self.end()

    def end(self) -> Request:
        """Return the request with its body, once nothing is missing."""
        self.request.size = self._length
        if self._expected is not None and self._places:
            self.request.md5 = self._expected.md5_of(self._places[0], self._places[0] + self._length)
        elif self._hash is not None:
            self.request.md5 = self._hash.hexdigest()
        else:
            self.request.body = b"".join(self._pieces)
        return self.request

    def _keep(self, piece: memoryview) -> None:
        if self._hash is None:
            self._pieces.append(bytes(piece))
        else:
            self._hash.update(piece)


def _list_places(request: Request, length: int, expected: StoredObject | None) -> list[int]:
    """Return where in the expected object the body may begin: a part is one of equal parts, or the last one."""
    if expected is None or length > expected.size:
        return []
    if "partNumber" not in request.query:
        return [0] if length == expected.size else []
    first = (int(request.query["partNumber"]) - 1) * length
    return [expected.size - length, first] if first + length < expected.size else [expected.size - length]
