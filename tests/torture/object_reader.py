"""Reads objects as the auditor does: signed by botocore, sent by urllib3, sharing nothing with rowferry."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from urllib3 import Retry, connection_from_url
from urllib3.exceptions import HTTPError

from rowferry_lab.servers.s3_servers import S3Server

AGAIN = Retry(5, redirect=False, backoff_factor=0.1, status_forcelist=range(500, 600))
TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Found:
    """One object: its bytes, and the headers that tell its properties."""

    body: bytes
    properties: Mapping[str, str]


class ObjectReader:
    """Kept connections to one server, for any thread. It reaches the server itself, never a proxy before it."""

    def __init__(self, server: S3Server) -> None:
        self._url = server.endpoint_url
        self._signer = S3SigV4Auth(Credentials(server.access_key, server.secret_key), "s3", "us-east-1")
        self._pool = connection_from_url(self._url, maxsize=8, timeout=TIMEOUT_SECONDS, retries=AGAIN)

    def close(self) -> None:
        self._pool.close()

    def read(self, bucket: str, key: str) -> Found | None:
        """Return an object; None when there is none. Raises OSError when the server itself cannot be asked."""
        path = f"/{bucket}/{quote(key, safe='/~')}"
        request = AWSRequest("GET", self._url + path)
        self._signer.add_auth(request)
        try:
            answer = self._pool.urlopen("GET", path, headers=dict(request.headers), decode_content=False)
        except HTTPError as failure:
            raise OSError(f"{bucket}/{key} cannot be read: {failure!r}") from failure
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise OSError(f"status {answer.status}: {answer.data[:200]!r}")
        properties = {name.lower(): value for name, value in answer.headers.items() if is_property(name)}
        return Found(answer.data, properties)


def is_property(header: str) -> bool:
    """Return whether a header of an answer tells something about the object rather than about the answer."""
    name = header.lower()
    told = {"etag", "last-modified", "cache-control", "expires"}
    return name in told or name.startswith(("content-", "x-amz-meta-", "x-amz-storage", "x-amz-tagging"))
