"""The HTTP endpoint of a daemon: `/metrics` for Prometheus, `/healthz` and `/readyz` for its supervisor."""

import errno
import logging
import os
import socket
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Self

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from rowferry.errors import UsageError

_log = logging.getLogger(__name__)

TEXT = "text/plain; charset=utf-8"
REQUEST_TIMEOUT_SECONDS = 10.0
"""How long a client may take to send its request: each silent connection holds a thread."""

IsTrue = Callable[[], bool]


class Endpoint:
    """Listens from its construction on, and answers in its context, on a thread of its own."""

    def __init__(
        self,
        host: str,
        port: int,
        registry: CollectorRegistry,
        is_ready: IsTrue,
        is_progressing: IsTrue = lambda: True,
    ) -> None:
        """Listen; port 0 is any free one. Raises UsageError when the port cannot be used.

        `/healthz` answers 200 or 503 as `is_progressing` returns, `/readyz` as `is_ready` does.
        """
        try:
            self._server = _Server(host, port, registry, is_ready, is_progressing)
        except OSError as error:
            raise UsageError(_explain(error, host, port)) from error
        os.register_at_fork(after_in_child=self._server.socket.close)  # a copy of this process must not hold the port
        self.port: int = self._server.server_address[1]
        _log.info("serving metrics", extra={"host": host, "port": self.port})

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, name="http", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, host: str, port: int, registry: CollectorRegistry, is_ready: IsTrue, is_progressing: IsTrue
    ) -> None:
        self.address_family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self.registry = registry
        self.is_ready = is_ready
        self.is_progressing = is_progressing
        super().__init__((str(address[0]), int(address[1])), _Handler)

    def server_bind(self) -> None:
        """Bind without looking up this host's name, which may wait for a resolver."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Log the error that is being handled, with the rest of the log; a client that hangs up is none."""
        if not isinstance(sys.exception(), ConnectionError):
            _log.exception("an HTTP request failed")


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]
    timeout = REQUEST_TIMEOUT_SECONDS
    server_version = "rowferry"

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/metrics":
                self._send_metrics()
            case "/healthz":
                alive = self.server.is_progressing()
                self._send(200 if alive else 503, TEXT, b"ok\n" if alive else b"no progress\n")
            case "/readyz":
                ready = self.server.is_ready()
                self._send(200 if ready else 503, TEXT, b"ready\n" if ready else b"not ready\n")
            case _:
                self._send(404, TEXT, b"there are /metrics, /healthz and /readyz\n")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send_metrics(self) -> None:
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        try:
            body: bytes = encode(self.server.registry)
        except Exception:  # noqa: BLE001 - one scrape; the next one may go well
            _log.exception("the metrics could not be read")
            self._send(500, TEXT, b"the metrics could not be read; see the log\n")
            return
        self._send(200, content_type, body)

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Do not log requests."""


def _explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is already in use: choose another one, or stop the program that listens there."
    return f"Cannot listen on port {port} of {host}: {error.strerror or error}."
