"""AWS Signature Version 4, and the signed head of each request. No I/O.

Source: AWS General Reference, "Create a signed AWS API request"; Amazon S3 API Reference, "Authenticating Requests
(AWS Signature Version 4)". The tests compare it with botocore's signer, which costs several times as much.
"""

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from rowferry import __version__
from rowferry.errors import ObjectRejected
from rowferry.http.proxy import describe_target
from rowferry.plan import Side
from rowferry.s3.access.credentials import CredentialSnapshot
from rowferry.s3.access.endpoint import Endpoint
from rowferry.s3.encodings import OBJECTS, OTHER, Accepts
from rowferry.s3.operations import REQUESTER_PAYS, Request
from rowferry.s3.providers import find_region

if TYPE_CHECKING:
    from hashlib import _Hash as Hash  # pyright: ignore[reportPrivateUsage]

Headers = list[tuple[str, str]]

SIGNED_BODY_BYTES = 64 * 1024
"""Larger bodies are not hashed a second time where their Content-MD5 is signed."""
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
USER_AGENT = f"User-Agent: rowferry/{__version__}\r\n\r\n"
_EMPTY_DIGEST = hashlib.sha256().hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


class Moment(NamedTuple):
    """What all signatures of one second with the same credentials share."""

    second: int
    credentials: CredentialSnapshot
    stamp: str
    inner: "Hash"
    """The first of the two digests of HMAC-SHA256 (RFC 2104), keyed, and fed the start of the string to sign: each
    request finishes a copy of it."""
    outer: "Hash"
    """The second one, keyed. Copies of both cost half of what a copy of an `hmac.HMAC` does."""
    credential: str
    """The start of the Authorization header."""

    def sign(self, request: str) -> str:
        """Return the signature of a canonical request."""
        digest = hashlib.sha256(request.encode("utf-8", "surrogateescape")).hexdigest()
        inner, outer = self.inner.copy(), self.outer.copy()
        inner.update(digest.encode())
        outer.update(inner.digest())
        return outer.hexdigest()

    def __repr__(self) -> str:
        return "Moment(...)"


class Unsigned(NamedTuple):
    """A request before its signature."""

    moment: Moment
    canonical: str
    """The canonical request."""
    headers: Headers
    words: str
    """The start of the Authorization header's value, up to the signature."""

    def sign(self) -> Headers:
        """Return the signed headers."""
        return self.complete(self.moment.sign(self.canonical))

    def complete(self, signature: str) -> Headers:
        """Return the headers with the one that has the signature."""
        return [*self.headers, ("Authorization", self.words + signature)]


class Signer:
    """Signs the requests to one region; any thread may use it."""

    def __init__(self, region: str) -> None:
        """`region`: its name as the server knows it."""
        self._region = region
        self._moment: Moment | None = None

    def lay_out(
        self, credentials: CredentialSnapshot, method: str, target: str, headers: Headers, body: bytes | None = b""
    ) -> "Unsigned":
        """Return what is to be signed, and what the signature goes into; `target` is percent-encoded as it is sent.

        `body`: None where it is not known yet. Every given header is signed, and `Host` must be among them.
        """
        moment = self.now(credentials)
        payload = _digest_body(body, headers)
        headers = [*headers, ("x-amz-content-sha256", payload), ("x-amz-date", moment.stamp)]
        if credentials.token:
            headers.append(("x-amz-security-token", credentials.token))
        names, values = zip(*headers, strict=True)
        layout = _lay_out(names)
        lines = layout.canonical % layout.put_in_order(values)
        if " " in lines or "\t" in lines:
            lines = layout.canonical % layout.put_in_order([_trim(value) for value in values])
        path, _, query = target.partition("?")
        query = _sort_query(query) if query else ""
        canonical = f"{method}\n{path}\n{query}\n{lines}{payload}"
        return Unsigned(moment, canonical, headers, f"{moment.credential}, SignedHeaders={layout.names}, Signature=")

    def now(self, credentials: CredentialSnapshot) -> Moment:
        """Return what the signatures of this second share: the same as before while neither it nor the keys change."""
        second = int(time.time())
        moment = self._moment
        if moment is None or moment.second != second or moment.credentials is not credentials:
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
            day = stamp[:8]
            scope = f"{day}/{self._region}/s3/aws4_request"
            inner, outer = _begin_hmac(_derive_key(credentials.secret_key, day, self._region))
            inner.update(f"{_ALGORITHM}\n{stamp}\n{scope}\n".encode())
            credential = f"{_ALGORITHM} Credential={credentials.access_key}/{scope}"
            self._moment = moment = Moment(second, credentials, stamp, inner, outer, credential)
        return moment


class HeadWriter:
    """Writes the heads of requests to one bucket: request line and signed headers."""

    def __init__(self, side: Side, endpoint: Endpoint) -> None:
        """Sign for the side's region, and name the server as `endpoint` does."""
        self._signer = Signer(find_region(side))
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
        head = self.write_head(request, self.lay_out(request, credentials).sign(), accepts)
        return head.encode("utf-8", "surrogateescape")

    def lay_out(self, request: Request, credentials: CredentialSnapshot) -> Unsigned:
        """Return what is to be signed of a request."""
        headers = [("Host", self._authority), *request.headers]
        headers += [header for header in self._own_headers if header not in request.headers]
        body = request.body if request.source is None else None
        return self._signer.lay_out(credentials, request.method, self._find_target(request), headers, body)

    def _find_target(self, request: Request) -> str:
        return (self._path_before_key if request.key else self._path_of_bucket) + request.target

    def write_head(self, request: Request, headers: Headers, accepts: Accepts) -> str:
        """Return the head of a request with its signed headers. Raises ObjectRejected for one that cannot be sent."""
        if request.method in {"PUT", "POST"}:
            length = len(request.body) if request.source is None else request.source.length
            headers = [*headers, ("Content-Length", str(length))]
        names, values = zip(*headers, strict=True)
        lines = _lay_out_head(names) % values
        head = f"{request.method} {self._prefix}{self._find_target(request)} HTTP/1.1\r\n{lines}"
        expected = len(headers) + 1
        if head.count("\r") != expected or head.count("\n") != expected or "\0" in head:
            raise ObjectRejected("InvalidHeader", f"{request.operation} would have a header with a line break in it")
        return head + self._ends[accepts]


class _Layout(NamedTuple):
    """How headers with certain names are signed: worked out once, for all requests of a kind."""

    canonical: str
    """The canonical headers and the signed names, with a `%s` for each value."""
    put_in_order: Callable[[Sequence[str]], tuple[str, ...]]
    """Returns the values in signing order."""
    names: str


@lru_cache(maxsize=256)
def _lay_out(names: tuple[str, ...]) -> _Layout:
    order = sorted((name.lower(), index) for index, name in enumerate(names))
    signed = ";".join([name for name, _ in order])
    lines = "".join([f"{name.replace('%', '%%')}:%s\n" for name, _ in order])
    return _Layout(f"{lines}\n{signed.replace('%', '%%')}\n", itemgetter(*[index for _, index in order]), signed)


@lru_cache(maxsize=256)
def _lay_out_head(names: tuple[str, ...]) -> str:
    """Return the lines of headers with these names, with a `%s` for each value."""
    return "".join([f"{name.replace('%', '%%')}: %s\r\n" for name in names])


def _begin_hmac(key: bytes) -> "tuple[Hash, Hash]":
    """Return the inner and the outer digest of an HMAC-SHA256, keyed. Source: RFC 2104, "Definition of HMAC"."""
    padded = key.ljust(64, b"\0")
    return hashlib.sha256(bytes(byte ^ 0x36 for byte in padded)), hashlib.sha256(bytes(byte ^ 0x5C for byte in padded))


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
