"""toxiproxy, which spoils TCP connections on demand: its server, and the little of its HTTP API that is needed."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from rowferry_lab.servers.server_process import ServerProcess, find_free_port
from support.checkout import ROOT

BUILT = ROOT / ".tools" / "bin" / "toxiproxy-server"
START_DEADLINE = timedelta(seconds=30)
ANSWER_SECONDS = 30
AGENT = {"User-Agent": "rowferry-tests"}
"""It refuses whatever looks like a browser."""
BYTES = re.compile(r'^toxiproxy_proxy_(received|sent)_bytes_total\{.*proxy="(.*?)".*\} (\S+)$', re.MULTILINE)


def find_toxiproxy() -> Path | None:
    """Return the server that `make servers` built, or the one on PATH; None when there is neither."""
    on_path = shutil.which("toxiproxy-server")
    return BUILT if BUILT.exists() else Path(on_path) if on_path else None


class Toxiproxy:
    """A running server."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def add_proxy(self, name: str, upstream: str) -> str:
        """Return the `host:port` that leads to `upstream` from now on."""
        proxy = self._ask("POST", "/proxies", {"name": name, "listen": "127.0.0.1:0", "upstream": upstream})
        return proxy["listen"]

    @contextmanager
    def toxic(self, proxy: str, kind: str, *, toxicity: float = 1.0, **attributes: int) -> Iterator[None]:
        """Spoil the connections through a proxy, in both directions, until the block ends; `toxicity`: how many."""
        for stream in ("upstream", "downstream"):
            toxic = {"name": stream, "type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes}
            self._ask("POST", f"/proxies/{proxy}/toxics", toxic)
        try:
            yield
        finally:
            for stream in ("upstream", "downstream"):
                self._ask("DELETE", f"/proxies/{proxy}/toxics/{stream}")

    def swallowed_bytes(self, proxy: str) -> int:
        """Return how many bytes went into a proxy and never came out, over all connections that have ended."""
        with urlopen(Request(f"{self._url}/metrics", headers=AGENT), timeout=ANSWER_SECONDS) as answer:
            found = BYTES.findall(answer.read().decode())
        return round(sum(float(n) * (1 if way == "received" else -1) for way, name, n in found if name == proxy))

    def is_there(self) -> bool:
        try:
            self._ask("GET", "/version")
        except URLError:
            return False
        return True

    def _ask(self, method: str, path: str, document: object = None) -> Any:
        data = None if document is None else json.dumps(document).encode()
        request = Request(self._url + path, data, AGENT, method=method)
        with urlopen(request, timeout=ANSWER_SECONDS) as answer:
            body = answer.read()
        return json.loads(body) if body else None


@contextmanager
def running_toxiproxy(program: Path) -> Iterator[Toxiproxy]:
    port = find_free_port()
    folder = Path(tempfile.mkdtemp(prefix="rowferry-toxiproxy-"))
    command = [str(program), "-host=127.0.0.1", f"-port={port}", "-proxy-metrics"]
    process = ServerProcess(command, folder=folder, temporary=True)
    try:
        found = Toxiproxy(port)
        process.wait_until(found.is_there, deadline=START_DEADLINE)
        yield found
    finally:
        process.stop()
        shutil.rmtree(folder, ignore_errors=True)
