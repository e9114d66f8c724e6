"""The stub of the benches as a server process: answers one by one, spread as real ones are. Built with go."""

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rowferry_lab.servers.s3_servers import S3Server

SOURCE = Path(__file__).parent / "stub"
PROGRAM = Path(__file__).parent.parent / ".tools" / "bin" / "rowferry-stub"


class StubServer(S3Server):
    """An S3 server that keeps no bytes and checks no signature; `options` are those of its command line."""

    name = "stub"

    def __init__(self, *options: str) -> None:
        """Take the options, such as `-latency=70`."""
        super().__init__()
        self._options = options

    def command(self, port: int, folder: Path) -> Sequence[str]:
        """Return the command of the server, which keeps nothing on disk."""
        del folder
        return [str(PROGRAM), f"-listen=127.0.0.1:{port}", *self._options]

    def read_stats(self) -> dict[str, Any]:
        """Return how many requests, writes and refusals there were."""
        with urllib.request.urlopen(f"{self.endpoint_url}/_stats", timeout=30) as response:
            return json.loads(response.read())


def build_stub() -> bool:
    """Build the stub; return whether there is one: it takes go."""
    if shutil.which("go") is None:
        return False
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", str(PROGRAM), "."], cwd=SOURCE, check=True)
    return True
