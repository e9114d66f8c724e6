"""Reads objects as the auditor does: signed by botocore, sent by http.client, sharing nothing with rowferry."""

import http.client
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from rowferry_lab.servers.s3_servers import S3Server

TRIES = 5
TIMEOUT = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Found:
    """One object: its bytes, and the headers that tell its properties."""

    body: bytes
    properties: Mapping[str, str]


class ObjectReader:
    """One connection to one server; for one thread. It reaches the server itself, never a proxy before it."""

    def __init__(self, server: S3Server) -> None:
        self._url = server.endpoint_url
        self._signer = S3SigV4Auth(Credentials(server.access_key, server.secret_key), "s3", "us-east-1")
        self._connection = http.client.HTTPConnection(urlsplit(self._url).netloc, timeout=TIMEOUT.total_seconds())

    def close(self) -> None:
        self._connection.close()

    def read(self, bucket: str, key: str) -> Found | None:
        """Return an object; None when there is none. Raises OSError when the server itself cannot be asked."""
        failure: Exception | None = None
        for wait in [0.05 * 2**attempt for attempt in range(TRIES)]:
            try:
                return self._read(f"/{bucket}/{quote(key, safe='/~')}")
            except (OSError, http.client.HTTPException) as error:
                failure = error
                self._connection.close()
                time.sleep(wait)
        raise OSError(f"{bucket}/{key} cannot be read: {failure!r}") from failure

    def _read(self, path: str) -> Found | None:
        request = AWSRequest("GET", self._url + path)
        self._signer.add_auth(request)
        self._connection.request("GET", path, headers=dict(request.headers))
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise OSError(f"status {answer.status}: {body[:200]!r}")
        return Found(body, {name.lower(): value for name, value in answer.getheaders() if is_property(name)})


def is_property(header: str) -> bool:
    """Return whether a header of an answer tells something about the object rather than about the answer."""
    name = header.lower()
    told = {"etag", "last-modified", "cache-control", "expires"}
    return name in told or name.startswith(("content-", "x-amz-meta-", "x-amz-storage", "x-amz-tagging"))
