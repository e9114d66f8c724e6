"""S3 servers in processes of their own: moto, versitygw, which is a real one, and the fake, which is fast."""

import http.client
import json
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

from rowferry.errors import UsageError
from rowferry_lab.servers.server_process import START_DEADLINE, OwnServer, ServerFailed, ServerProcess

ASK_SECONDS = 30


class S3Server(OwnServer):
    """A server of S3 in a temporary folder, with one account."""

    takes_checksums: ClassVar[bool] = True
    """Whether it takes what SDKs add of their own accord since 2025: x-amz-checksum-* and a trailer."""

    def __init__(self) -> None:
        """Choose the secret; nothing is started yet."""
        super().__init__()
        self.access_key = "rowferry"
        self.secret_key = secrets.token_hex(16)
        self.endpoint_url = ""
        """Known once the server is started."""

    def command(self, port: int, folder: Path) -> Sequence[str]:
        """Return what starts the server on this port; it may keep its objects below `folder`."""
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        """Return what the server finds in its environment besides ours."""
        return {}

    def start_on(self, port: int) -> None:
        """Start the server on this port. Raises ServerFailed when it does not answer."""
        self._process = ServerProcess(
            self.command(port, self.folder), folder=self.folder, environment=self.environment(), temporary=True
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
        request = Request(f"{self.endpoint_url}{target}", method=method)  # noqa: S310 - always http
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=ASK_SECONDS) as response:
                return response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerFailed(f"The fake S3 server does not take {target}: {error}.") from error


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
