"""The requests that tests send by the thousand, without boto3, which takes ten times the CPU for each."""

import re
import ssl
from collections import deque
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import quote, urlsplit

from rowferry.s3.access.credentials import CredentialSnapshot
from rowferry.s3.access.signing import Signer
from rowferry_lab.servers.fake_s3.store import Bucket, make_object
from rowferry_lab.servers.s3_servers import S3Server
from support.s3.fake_s3 import FakeAddress

TIMEOUT_SECONDS = 60


class RequestFailed(Exception):
    """A request was refused, or got no response."""


class QuickRequests:
    """Signed requests to one server, on kept connections; any thread may send them. They raise RequestFailed."""

    def __init__(self, server: S3Server, tls: ssl.SSLContext | None = None) -> None:
        self._host, self._tls = urlsplit(server.endpoint_url).netloc, tls
        self._signer = Signer("us-east-1")
        self._credentials = CredentialSnapshot(server.access_key, server.secret_key, None)
        self._idle: deque[HTTPConnection] = deque()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def create_bucket(self, bucket: str) -> None:
        self._ask("PUT", f"/{bucket}")

    def forget_bucket(self, bucket: str) -> int:
        """Return how many bytes the first thousand objects of a bucket still take, if it is there."""
        listed = self._ask("GET", f"/{bucket}?list-type=2") or b""
        return sum(map(int, re.findall(rb"<Size>(\d+)</Size>", listed)))

    def put(self, bucket: str, key: str, body: bytes) -> None:
        if self._ask("PUT", f"/{bucket}/{quote(key)}", body) is None:
            raise RequestFailed(f"there is no bucket {bucket}")

    def read(self, bucket: str, key: str) -> bytes | None:
        """Return an object's bytes; None where there is no such object."""
        return self._ask("GET", f"/{bucket}/{quote(key)}")

    def _ask(self, method: str, target: str, body: bytes = b"") -> bytes | None:
        """Return the body of a response; None for 404."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        headers = dict(self._signer.lay_out(self._credentials, method, target, [("Host", self._host)], body).sign())
        try:
            status, found = _exchange(connection, method, target, body, headers)
        except (OSError, HTTPException) as error:
            connection.close()
            raise RequestFailed(f"{method} {target}: {error!r}") from error
        self._idle.append(connection)
        if status not in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}:
            raise RequestFailed(f"{method} {target}: {status} {found.decode(errors='replace')}")
        return found if status == HTTPStatus.OK else None

    def _connect(self) -> HTTPConnection:
        if self._tls is None:
            return HTTPConnection(self._host, timeout=TIMEOUT_SECONDS)
        return HTTPSConnection(self._host, timeout=TIMEOUT_SECONDS, context=self._tls)


class StoreRequests(QuickRequests):
    """The same of a fake in this process, without requests: straight to its store."""

    def __init__(self, server: FakeAddress) -> None:
        super().__init__(server)
        self._store = server.fake.store

    def create_bucket(self, bucket: str) -> None:
        self._store.buckets[bucket] = Bucket()

    def forget_bucket(self, bucket: str) -> int:
        self._store.buckets.pop(bucket, None)
        return 0

    def put(self, bucket: str, key: str, body: bytes) -> None:
        self._store.bucket(bucket).put(key, make_object(body))

    def read(self, bucket: str, key: str) -> bytes | None:
        found = self._store.bucket(bucket).find(key)
        return None if found is None else found.body


def _exchange(
    connection: HTTPConnection, method: str, target: str, body: bytes, headers: dict[str, str]
) -> tuple[int, bytes]:
    """Send a request and return status and body of its response; again where a kept connection was closed."""
    if connection.sock is not None:
        with suppress(OSError, HTTPException):
            return _send(connection, method, target, body, headers)
        connection.close()
    return _send(connection, method, target, body, headers)


def _send(
    connection: HTTPConnection, method: str, target: str, body: bytes, headers: dict[str, str]
) -> tuple[int, bytes]:
    connection.request(method, target, body or None, headers)
    with connection.getresponse() as response:
        return response.status, response.read()
