"""The door to awscrt, AWS's own C runtime: the only file that talks to it. One connection pool a side."""

# pyright: reportMissingTypeStubs=false
# awscrt carries few types: its modules are taken as Any here, and narrowed where they leave this file.

import ctypes
import io
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol, cast

import awscrt.auth
import awscrt.http
import awscrt.io
import awscrt.s3
from awscrt.exceptions import AwsCrtError

from rowferry.credentials import FreshCredentials, Frozen
from rowferry.endpoint import Endpoint
from rowferry.errors import ObjectError, ServerFault
from rowferry.plan import Side
from rowferry.s3_answer import classify
from rowferry.s3_request import Request

_auth: Any = awscrt.auth
_http: Any = awscrt.http
_io: Any = awscrt.io
_s3: Any = awscrt.s3

_ANY_REQUEST = _s3.S3RequestType.DEFAULT


class Cancellable(Protocol):
    """A request that awscrt is at."""

    def cancel(self) -> None:
        """Give it up: `on_done` follows within a millisecond, within a second during a backoff."""
        ...


class Callbacks(Protocol):
    """What awscrt calls on its event-loop thread; headers and body come whole, when the answer is complete."""

    def on_headers(self, headers: list[tuple[str, str]], **_: object) -> None:
        """Take the answer's headers; not called when awscrt gives up after its last retry."""
        ...

    def on_body(self, chunk: bytes, **_: object) -> None:
        """Take the body of a 2xx answer; what it raises is the error that `on_done` gets."""
        ...

    def on_done(
        self,
        error: Exception | None,
        error_headers: list[tuple[str, str]] | None,
        error_body: bytes | None,
        status_code: int | None,
        **_: object,
    ) -> None:
        """Take the end of the request, once; `error_headers` is None unless an HTTP answer is the error."""
        ...


class CrtConnection:
    """awscrt's client for one endpoint: connections, signatures, retries.

    A second endpoint needs another one: awscrt would silently send another port's requests to the first port.
    """

    def __init__(
        self,
        side: Side,
        credentials: FreshCredentials | Frozen,
        *,
        endpoint: Endpoint,
        max_in_flight: int,
        backoff: timedelta | None,
    ) -> None:
        """Prepare up to `max_in_flight` connections; the first request makes the first one.

        awscrt sizes its pool by the throughput it is told to reach (2.5 connections a Gbit/s); the override only
        lowers that. Its default retry mode shares one token bucket and gives requests up under throttling.
        """
        self._host = endpoint.host_header(side.bucket)
        self._path_before_key = endpoint.path_before_key(side.bucket)
        secure = endpoint.scheme == "https"
        self._client: Any = _s3.S3Client(
            bootstrap=_share_bootstrap(),
            region=side.region,
            tls_mode=_s3.S3RequestTlsMode.ENABLED if secure else _s3.S3RequestTlsMode.DISABLED,
            tls_connection_options=_trust(endpoint.ca_bundle) if secure and endpoint.ca_bundle else None,
            throughput_target_gbps=0.4 * max_in_flight,
            max_active_connections_override=max_in_flight,
            retry_config=_configure_retries(backoff),
            signing_config=_s3.create_default_s3_signing_config(
                region=side.region, credential_provider=_provide(credentials)
            ),
        )

    def start(self, request: Request, callbacks: Callbacks) -> Cancellable:
        """Hand `request` to awscrt and return at once; raises AwsCrtError for a header or path it refuses."""
        headers = [("Host", self._host), *request.headers]
        if request.method in {"PUT", "POST"}:
            headers.append(("Content-Length", str(len(request.body))))
        body = io.BytesIO(request.body) if request.body else None
        path = self._path_before_key + request.target
        return self._client.make_request(
            type=_ANY_REQUEST,
            operation_name=request.operation,
            request=_http.HttpRequest(request.method, path, _http.HttpHeaders(headers), body),
            on_headers=callbacks.on_headers,
            on_body=callbacks.on_body,
            on_done=callbacks.on_done,
        )

    def release(self) -> threading.Event:
        """Let go of awscrt's client and return the event that tells when its connections are closed."""
        released = cast("threading.Event", self._client.shutdown_event)
        self._client = None
        return released


def _configure_retries(backoff: timedelta | None) -> Any:
    """Return awscrt's way to try again: not at all for None; its default mode gives up under throttling."""
    if backoff is None:
        return _s3.S3RetryConfig(retry_mode=_s3.S3RetryMode.NONE)
    return _s3.S3RetryConfig(
        retry_mode=_s3.S3RetryMode.EXPONENTIAL_BACKOFF,
        backoff_scale_factor_ms=max(1, int(backoff.total_seconds() * 1000)),
    )


_thread = threading.local()
"""Lives in a thread's Python state: what is noted here is gone once that is."""


def keep_thread_state() -> None:
    """Keep the calling thread's Python thread state once its callback returns.

    A thread that Python did not start gets a new state for each callback, and loses it again: an mmap, a munmap and
    page faults each time. One PyGILState_Ensure more than there are releases keeps it.
    """
    if not hasattr(_thread, "is_kept"):
        _thread.is_kept = True
        ctypes.pythonapi.PyGILState_Ensure()


def translate_error(error: Exception) -> ObjectError:
    """Return the ObjectError for whatever awscrt, or the preparation of a request, raised."""
    if isinstance(error, ObjectError):
        return error
    if isinstance(error, AwsCrtError):
        return classify(0, cast("Any", error).name, cast("Any", error).message)
    return ServerFault(type(error).__name__, str(error))


_bootstraps: dict[int, Any] = {}
"""An event loop (one thread) and a name resolver, by process id: a forked child must not use its parent's."""


def _share_bootstrap() -> Any:
    """Return what all connections of this process share, made at the first call."""
    if (shared := _bootstraps.get(os.getpid())) is None:
        loops = _io.EventLoopGroup(1)
        shared = _bootstraps.setdefault(os.getpid(), _io.ClientBootstrap(loops, _io.DefaultHostResolver(loops)))
    return shared


def _provide(source: FreshCredentials | Frozen) -> Any:
    """Return awscrt's provider of credentials; renewed ones are looked up at each signature, without waiting."""
    if not isinstance(source, FreshCredentials):
        return _auth.AwsCredentialsProvider.new_static(source.access_key, source.secret_key, source.token)
    return _auth.AwsCredentialsProvider.new_delegate(_remember_native(source))


def _remember_native(source: FreshCredentials) -> Callable[[], Any]:
    """Return a function that returns the newest credentials as awscrt's own, made anew only when they change."""
    held: list[tuple[Frozen, Any]] = []

    def find_current() -> Any:
        frozen = source.frozen
        if not held or held[0][0] is not frozen:
            held[:] = [(frozen, _auth.AwsCredentials(frozen.access_key, frozen.secret_key, frozen.token))]
        return held[0][1]

    return find_current


def _trust(ca_bundle: str) -> Any:
    """Return TLS options that trust the certificates of a file, instead of the system's."""
    options = _io.TlsContextOptions()
    options.override_default_trust_store_from_path(ca_filepath=ca_bundle)
    return _io.ClientTlsContext(options).new_connection_options()
