"""AWS Signature Version 4, and the signed head of each request. No I/O.

Source: AWS General Reference, "Create a signed AWS API request"; Amazon S3 API Reference, "Authenticating Requests
(AWS Signature Version 4)". The tests compare it with botocore's signer, which costs several times as much.
"""

import hashlib
import hmac
import re
import time
from functools import lru_cache
from importlib.metadata import version
from typing import NamedTuple

from rowferry.errors import ObjectRejected
from rowferry.http.proxy import describe_target
from rowferry.plan import Side
from rowferry.s3.access.credentials import CredentialSnapshot
from rowferry.s3.access.endpoint import Endpoint
from rowferry.s3.encodings import OBJECTS, OTHER, Accepts
from rowferry.s3.operations import REQUESTER_PAYS, Request

Headers = list[tuple[str, str]]

SIGNED_BODY_BYTES = 64 * 1024
"""Larger bodies are not hashed a second time where their Content-MD5 is signed."""
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
USER_AGENT = f"User-Agent: rowferry/{version('rowferry')}\r\n\r\n"
_EMPTY_DIGEST = hashlib.sha256().hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


class _Moment(NamedTuple):
    """What all signatures of one second with the same credentials share."""

    second: int
    credentials: CredentialSnapshot
    stamp: str
    mac: hmac.HMAC
    """Keyed, and fed the start of the string to sign: each request finishes a copy of it."""
    credential: str
    """The start of the Authorization header."""

    def __repr__(self) -> str:
        return "_Moment(...)"


class Signer:
    """Signs the requests to one region; any thread may use it."""

    def __init__(self, region: str) -> None:
        """`region`: its name as the server knows it."""
        self._region = region
        self._moment: _Moment | None = None
        self.clock_offset = 0.0
        """Seconds by which the server's clock is ahead of this host's; 0 while that does not matter."""

    def sign(
        self, credentials: CredentialSnapshot, method: str, target: str, headers: Headers, body: bytes | None = b""
    ) -> Headers:
        """Return `headers` with the signature's own; `target` is the percent-encoded path and query as they are sent.

        `body`: None where it is not known yet. Every given header is signed, and `Host` must be among them.
        """
        moment = self._now(credentials)
        payload = _digest_body(body, headers)
        headers = [*headers, ("x-amz-content-sha256", payload), ("x-amz-date", moment.stamp)]
        if credentials.token:
            headers.append(("x-amz-security-token", credentials.token))
        order, names = _put_in_order(tuple([name for name, _ in headers]))
        lines = [f"{name}:{_trim(headers[index][1])}" for name, index in order]
        path, _, query = target.partition("?")
        query = _sort_query(query) if query else ""
        request = "\n".join([method, path, query, *lines, "", names, payload])
        digest = hashlib.sha256(request.encode(errors="surrogateescape")).hexdigest()
        mac = moment.mac.copy()
        mac.update(digest.encode())
        words = f"{moment.credential}, SignedHeaders={names}, Signature={mac.hexdigest()}"
        headers.append(("Authorization", words))
        return headers

    def _now(self, credentials: CredentialSnapshot) -> _Moment:
        second = int(time.time() + self.clock_offset)
        moment = self._moment
        if moment is None or moment.second != second or moment.credentials is not credentials:
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
            day = stamp[:8]
            scope = f"{day}/{self._region}/s3/aws4_request"
            self._moment = moment = _Moment(
                second,
                credentials,
                stamp,
                hmac.new(
                    _derive_key(credentials.secret_key, day, self._region),
                    f"{_ALGORITHM}\n{stamp}\n{scope}\n".encode(),
                    "sha256",
                ),
                credential=f"{_ALGORITHM} Credential={credentials.access_key}/{scope}",
            )
        return moment


class HeadWriter:
    """Writes the heads of requests to one bucket: request line and signed headers."""

    def __init__(self, side: Side, endpoint: Endpoint) -> None:
        """Sign for the side's region, and name the server as `endpoint` does."""
        self.signer = Signer(side.region)
        self._own_headers = (REQUESTER_PAYS,) if side.requester_pays else ()
        self._authority = endpoint.host_header(side.bucket)
        self._path_before_key = endpoint.path_before_key(side.bucket)
        self._path_of_bucket = "/" if endpoint.virtual_host else self._path_before_key.rstrip("/")
        self._prefix, proxy_header = describe_target(endpoint.proxy, endpoint.scheme, self._authority)
        # Accept-Encoding is not signed, for GCS rewrites it.
        self._ends: dict[Accepts, str] = {
            accepts: f"{proxy_header}Accept-Encoding: {accepts}\r\n{USER_AGENT}" for accepts in OTHER
        }

    def write(self, request: Request, credentials: CredentialSnapshot, accepts: Accepts = "gzip") -> bytes:
        """Return the request's head, signed now; `accepts`: how an object may come, anything else comes plain.

        Raises ObjectRejected for a header that cannot be sent.
        """
        try:
            return self._write(request, credentials, accepts if request.operation in OBJECTS else "identity")
        except UnicodeEncodeError as error:
            raise ObjectRejected("InvalidHeader", f"{request.operation} would have a header that is no text") from error

    def _write(self, request: Request, credentials: CredentialSnapshot, accepts: Accepts) -> bytes:
        target = (self._path_before_key if request.key else self._path_of_bucket) + request.target
        headers = [("Host", self._authority), *request.headers]
        headers += [header for header in self._own_headers if header not in request.headers]
        body = request.body if request.source is None else None
        headers = self.signer.sign(credentials, request.method, target, headers, body)
        if request.method in {"PUT", "POST"}:
            length = len(request.body) if request.source is None else request.source.length
            headers.append(("Content-Length", str(length)))
        lines = [f"{name}: {value}" for name, value in headers]
        end = self._ends[accepts]
        head = "\r\n".join([f"{request.method} {self._prefix}{target} HTTP/1.1", *lines, end])
        expected = len(lines) + 1 + end.count("\r")
        if head.count("\r") != expected or head.count("\n") != expected or "\0" in head:
            raise ObjectRejected("InvalidHeader", f"{request.operation} would have a header with a line break in it")
        return head.encode(errors="surrogateescape")


@lru_cache(maxsize=256)
def _put_in_order(names: tuple[str, ...]) -> tuple[list[tuple[str, int]], str]:
    """Return the lower-case names in signing order, each with its index, and all of them in one string."""
    order = sorted((name.lower(), index) for index, name in enumerate(names))
    return order, ";".join([name for name, _ in order])


def _derive_key(secret_key: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _digest_body(body: bytes | None, headers: Headers) -> str:
    if body is None:
        return UNSIGNED_PAYLOAD
    if not body:
        return _EMPTY_DIGEST
    if len(body) > SIGNED_BODY_BYTES and any(name == "Content-MD5" for name, _ in headers):
        return UNSIGNED_PAYLOAD
    return hashlib.sha256(body).hexdigest()


def _sort_query(query: str) -> str:
    """Return the query's encoded `name=value` pairs in the order of their names."""
    return "&".join(sorted(query.split("&"), key=lambda pair: pair.split("=", 1)))


def _trim(value: str) -> str:
    """Return a header's value without spaces at its ends; several within become one."""
    value = value.strip(" \t")
    return re.sub(" +", " ", value) if "  " in value else value
