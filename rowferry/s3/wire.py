"""S3 requests on the wire to one side's bucket: signed, sent on a kept connection, given up when told to."""

import asyncio
import ssl
import threading
from functools import partial
from importlib.metadata import version

from rowferry.errors import ObjectError, ObjectRejected, ServerFault, ServerNotTrusted, Unreachable
from rowferry.http.connect import Dial
from rowferry.http.connection import Call, Listener
from rowferry.http.event_loop import LoopThread, share_loop
from rowferry.http.pool import Pool
from rowferry.http.proxy import describe_target
from rowferry.plan import Side
from rowferry.s3.credentials import FreshCredentials, Frozen
from rowferry.s3.endpoint import Endpoint
from rowferry.s3.operations import Request
from rowferry.s3.signing import Signer

USER_AGENT = f"User-Agent: rowferry/{version('rowferry')}\r\n\r\n"
AS_STORED = f"Accept-Encoding: gzip\r\n{USER_AGENT}"
"""Who does not say so gets gzip objects inflated from R2 and GCS; unsigned, for GCS rewrites it. Nothing is decoded."""


class S3Wire:
    """The way to one bucket: requests of this process become HTTP, answers come back to their listeners."""

    def __init__(
        self, side: Side, credentials: FreshCredentials | Frozen, *, endpoint: Endpoint, max_in_flight: int
    ) -> None:
        """Prepare up to `max_in_flight` connections; the first request makes the first one."""
        self._credentials: FreshCredentials | Frozen = credentials
        self._signer = Signer(side.region)
        self._authority = endpoint.host_header(side.bucket)
        self._path_before_key = endpoint.path_before_key(side.bucket)
        self._path_of_bucket = "/" if endpoint.virtual_host else self._path_before_key.rstrip("/")
        host = f"{side.bucket}.{endpoint.host}" if endpoint.virtual_host else endpoint.host
        self._prefix, proxy_header = describe_target(endpoint.proxy, endpoint.scheme, self._authority)
        self._ends: dict[str, str] = dict.fromkeys(("GET", "HEAD"), proxy_header + AS_STORED)
        self._other_end = proxy_header + USER_AGENT
        self._thread = share_loop()
        self._pool = Pool(Dial(endpoint, host), max_in_flight, explain_failure)

    def prepare(self, request: Request, listener: Listener, *, max_body_bytes: int) -> "Departure":
        """Sign `request`, and return it ready to leave; raises ObjectRejected for what cannot be put in a head."""
        is_head = request.method == "HEAD"
        head = self._compose(request)
        call = Call(head, request.body, listener, is_head=is_head, max_body_bytes=max_body_bytes)
        # A completion that was carried out would be refused the second time: whoever asked looks what became of it.
        call.may_be_resent = request.method != "POST"
        return Departure(self._thread, self._pool, call)

    @property
    def clock_offset(self) -> float:
        """Return the seconds that are added to this host's time in signatures."""
        return self._signer.clock_offset

    @clock_offset.setter
    def clock_offset(self, seconds: float) -> None:
        self._signer.clock_offset = seconds

    @property
    def frozen_credentials(self) -> Frozen:
        """Return the credentials that the next request is signed with."""
        keys = self._credentials
        return keys.frozen if isinstance(keys, FreshCredentials) else keys

    def use_credentials(self, credentials: Frozen) -> None:
        """Sign with these from now on."""
        self._credentials = credentials

    def release(self) -> threading.Event:
        """Close the connections and return the event that tells when that is done."""
        released = threading.Event()
        self._thread.run(self._pool.close)
        self._thread.run(released.set)
        return released

    def _compose(self, request: Request) -> bytes:
        """Return the request's head, signed at this moment."""
        target = (self._path_before_key if request.key else self._path_of_bucket) + request.target
        headers = [("Host", self._authority), *request.headers]
        headers = self._signer.sign(self.frozen_credentials, request.method, target, headers, request.body)
        if request.method in {"PUT", "POST"}:
            headers.append(("Content-Length", str(len(request.body))))
        lines = [f"{name}: {value}" for name, value in headers]
        end = self._ends.get(request.method, self._other_end)
        head = "\r\n".join([f"{request.method} {self._prefix}{target} HTTP/1.1", *lines, end])
        wanted = len(lines) + 1 + end.count("\r")
        if head.count("\r") != wanted or head.count("\n") != wanted or "\0" in head:
            raise ObjectRejected("InvalidHeader", f"{request.operation} would have a header with a line break in it")
        return head.encode(errors="surrogateescape")


class Departure:
    """A request that is ready to leave, or has left; any thread may say so."""

    __slots__ = ("_call", "_pool", "_thread")

    def __init__(self, thread: LoopThread, pool: Pool, call: Call) -> None:
        """Hold on to the call, and to the pool that it leaves by."""
        self._thread = thread
        self._pool = pool
        self._call = call

    def leave(self) -> None:
        """Send it, and return at once."""
        self._thread.run(partial(self._pool.submit, self._call))

    def cancel(self) -> None:
        """Give it up: its listener hears of it soon, unless an answer comes first."""
        self._thread.run(self._call.give_up)


def explain_failure(error: Exception) -> ObjectError:
    """Return the ObjectError for whatever the preparation of a request, or connecting, raised."""
    if isinstance(error, ObjectError):
        return error
    name = type(error).__name__
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = "AWS_CA_BUNDLE can name the file of an authority of your own"
        words = f"the certificate of the server is not trusted ({error.verify_message}); {remedy}"
        return ServerNotTrusted("CertificateNotTrusted", words)
    if isinstance(error, asyncio.TimeoutError):
        return Unreachable("ConnectTimeout", "the server accepted no connection in time")
    if isinstance(error, OSError):
        return Unreachable(name, str(error))
    return ServerFault(name, str(error))
