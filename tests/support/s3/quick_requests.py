"""The requests that tests send by the thousand, without boto3, which takes ten times the CPU for each."""

import re
import ssl
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from urllib3 import Retry, connection_from_url
from urllib3.exceptions import HTTPError

from rowferry.s3.access.credentials import CredentialSnapshot
from rowferry.s3.access.signing import Signer
from rowferry_lab.servers.fake_s3.store import Bucket, make_object
from rowferry_lab.servers.s3_servers import S3Server
from support.s3.fake_s3 import FakeAddress

TIMEOUT_SECONDS = 60
MOST_KEPT = 32
ONCE_MORE = Retry(1, redirect=False)
"""A kept connection may have been closed."""


class RequestFailed(Exception):
    """A request was refused, or got no response."""


class QuickRequests:
    """Signed requests to one server, on kept connections; any thread may send them. They raise RequestFailed."""

    def __init__(self, server: S3Server, tls: ssl.SSLContext | None = None) -> None:
        more = {"ssl_context": tls} if tls else {}
        self._pool = connection_from_url(server.endpoint_url, maxsize=MOST_KEPT, timeout=TIMEOUT_SECONDS, **more)
        self._host = urlsplit(server.endpoint_url).netloc
        self._signer = Signer("us-east-1")
        self._credentials = CredentialSnapshot(server.access_key, server.secret_key, None)

    def close(self) -> None:
        self._pool.close()

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
        headers = dict(self._signer.lay_out(self._credentials, method, target, [("Host", self._host)], body).sign())
        try:
            found = self._pool.urlopen(method, target, body or None, headers, ONCE_MORE, decode_content=False)
        except HTTPError as error:
            raise RequestFailed(f"{method} {target}: {error!r}") from error
        if found.status not in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}:
            raise RequestFailed(f"{method} {target}: {found.status} {found.data.decode(errors='replace')}")
        return found.data if found.status == HTTPStatus.OK else None


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
