"""S3 servers in processes of their own: moto, versitygw, which is a real one, and the fake, which is fast."""

import http.client
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

from rowferry.errors import UsageError
from rowferry_lab.servers.server_process import OwnServer, ServerFailed, ServerProcess, find_free_port

START_DEADLINE = timedelta(seconds=120)
ASK_SECONDS = 30
START_TRIES = 3
"""A free port may be gone by the time the server asks for it; then another one is tried."""


class S3Server(OwnServer):
    """A server on a free port of 127.0.0.1; use it as a context manager, or call `start` and `close`."""

    name: ClassVar[str]
    parent: ClassVar[Path | None] = None
    """Where it makes its folder; None: where temporary files are."""
    takes_checksums: ClassVar[bool] = True
    """Whether it takes what SDKs add of their own accord since 2025: x-amz-checksum-* and a trailer."""

    def __init__(self) -> None:
        """Choose the secret; nothing is started yet."""
        self.access_key = "rowferry"
        self.secret_key = secrets.token_hex(16)
        self.endpoint_url = ""
        """Known once the server is started."""
        self._folder: Path | None = None
        self._process: ServerProcess | None = None

    def command(self, port: int, folder: Path) -> Sequence[str]:
        """Return what starts the server on this port; it may keep its objects below `folder`."""
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        """Return what the server finds in its environment besides ours."""
        return {}

    def choose_port(self) -> int:
        """Return a port that is free now."""
        return find_free_port()

    def start(self) -> None:
        """Start the server and return when it answers; raises ServerFailed with its last words."""
        for tries_left in reversed(range(START_TRIES)):
            try:
                self._start_on(self.choose_port())
            except BaseException as error:
                self.close()
                if not tries_left or not isinstance(error, ServerFailed):
                    raise
            else:
                return

    def close(self) -> None:
        """Stop the server and remove what it kept; nothing happens when it is stopped."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def crash(self) -> None:
        """Kill the server, and start it again on the same port over what it kept; raises ServerFailed if it fails."""
        if self._process is not None:
            self._process.stop(signal.SIGKILL)
        self._start_on(urlsplit(self.endpoint_url).port or self.choose_port())

    def _start_on(self, port: int) -> None:
        """Start the server on this port. Raises ServerFailed when it does not answer."""
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix=f"rowferry-{self.name}-", dir=self.parent))
        self._process = ServerProcess(
            self.command(port, self._folder), folder=self._folder, environment=self.environment(), temporary=True
        )
        self._process.wait_until(lambda: answers_http(port), deadline=START_DEADLINE)
        self.endpoint_url = f"http://127.0.0.1:{port}"


class MotoServer(S3Server):
    """moto in a process of its own: objects in memory, any credentials accepted."""

    name = "moto"

    def command(self, port: int, folder: Path) -> Sequence[str]:
        """Return the command of moto's server, which keeps nothing on disk."""
        del folder
        return [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)]


class FakeS3Server(S3Server):
    """The fake in a process of its own: objects in memory, little CPU, a set latency, any credentials accepted."""

    name = "fake-s3"

    def __init__(self, *options: str) -> None:
        """Take further options of its command line, such as `--latency-seconds=0.07`."""
        super().__init__()
        self._options = options

    def command(self, port: int, folder: Path) -> Sequence[str]:
        """Return the command of the server, which keeps nothing on disk."""
        del folder
        return [sys.executable, "-m", "rowferry_lab.servers.fake_s3.server", "--port", str(port), *self._options]

    def set_latency(self, latency: timedelta) -> None:
        """Let every answer from now on take this long, besides the time that it takes anyway."""
        self.configure("latency", seconds=latency.total_seconds())

    def configure(self, group: str, **settings: float | str) -> None:
        """Change the settings of `latency` or `limits` (see fake_s3/settings.py), or begin an outage."""
        self._ask("PUT", f"/_{group}?{urlencode(settings)}")

    def read_stats(self) -> dict[str, Any]:
        """Return what `GET /_stats` says: counts and CPU seconds since the start. Raises ServerFailed in an outage."""
        return json.loads(self._ask("GET", "/_stats"))

    def _ask(self, method: str, target: str) -> bytes:
        """Return the body of the answer to a request that is not S3's. Raises ServerFailed when there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(self.endpoint_url).port, timeout=ASK_SECONDS)
        try:
            connection.request(method, target)
            response = connection.getresponse()
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise ServerFailed(f"The fake S3 server refuses {target}: {response.status}.")
            return response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerFailed(f"The fake S3 server does not answer: {error}.") from error
        finally:
            connection.close()


class VersityServer(S3Server):
    """versitygw over a folder: objects are files, their metadata extended attributes, credentials are checked."""

    name = "versitygw"

    def __init__(self, program: Path) -> None:
        """Take the path of the versitygw program; raises UsageError when there is none."""
        super().__init__()
        if not program.is_file():
            raise UsageError(f"There is no versitygw at {program}; `make servers` builds one where `go` is installed.")
        self._program = program

    def command(self, port: int, folder: Path) -> Sequence[str]:
        """Return the command of versitygw; raises UsageError when the folder takes no extended attributes."""
        check_extended_attributes(folder)
        objects = folder / "objects"
        objects.mkdir(exist_ok=True)
        listening = ["--port", f"127.0.0.1:{port}", "--quiet", "--keep-alive"]
        return [str(self._program), *listening, "posix", str(objects)]

    def environment(self) -> Mapping[str, str]:
        """Return the credentials, which do not show in the list of processes this way."""
        return {"ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key}


def answers_http(port: int) -> bool:
    """Return whether a server on this port of 127.0.0.1 answers a request, with any status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/")
        return connection.getresponse().status > 0
    return False


def check_extended_attributes(folder: Path) -> None:
    """Raise UsageError when files in the folder cannot have extended attributes; macOS always has them."""
    if sys.platform != "linux":
        return
    try:
        os.setxattr(folder, "user.rowferry", b"1")
    except OSError:
        advice = "set TMPDIR to a folder where they can"
        raise UsageError(f"Files in {folder} cannot have extended attributes; {advice}.") from None
