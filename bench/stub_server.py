"""The stub of the benches as a server process: answers one by one, spread as real ones are. Built with go."""

import json
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.certificate import write_certificate
from rowferry_lab.servers.s3_servers import S3Server

SOURCE = Path(__file__).parent / "stub"
PROGRAM = Path(__file__).parent.parent / ".tools" / "bin" / "rowferry-stub"


class StubServer(S3Server):
    """An S3 server that keeps no bytes and checks no signature; `options` are those of its command line."""

    name = "stub"

    def __init__(self, *options: str, tls: bool = False) -> None:
        """Take the options, such as `-latency=70`; `tls`: it has a certificate of its own, which clients must trust."""
        super().__init__()
        self._options = options
        self._tls = tls
        self.certificate: Path | None = None
        """Known once the server is started, where it speaks TLS."""

    def command(self, port: int, folder: Path) -> Sequence[str]:
        """Return the command of the server, which keeps nothing on disk but its certificate."""
        command = [str(PROGRAM), f"-listen=127.0.0.1:{port}", *self._options]
        if self._tls:
            self.certificate, key = write_certificate(folder)
            command += [f"-certificate={self.certificate}", f"-key={key}"]
        return command

    def start(self) -> None:
        """Start the server and return when it answers; raises ServerFailed with its last words."""
        super().start()
        if self._tls:
            self.endpoint_url = self.endpoint_url.replace("http:", "https:")

    def read_stats(self) -> dict[str, Any]:
        """Return how many objects were written."""
        trusted = ssl.create_default_context(cafile=self.certificate) if self._tls else None
        with urllib.request.urlopen(f"{self.endpoint_url}/_stats", timeout=30, context=trusted) as response:
            return json.loads(response.read())


def build_stub() -> bool:
    """Build the stub; return whether there is one: it takes go."""
    if shutil.which("go") is None:
        return False
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", str(PROGRAM), "."], cwd=SOURCE, check=True)
    return True
