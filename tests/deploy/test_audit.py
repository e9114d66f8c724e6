"""`make audit` fails on a known vulnerability of a pinned package, and on nothing that the network does."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from support.docs.doc_pages import ROOT

pytestmark = pytest.mark.soak

PIN = f"leaky==1.0 --hash=sha256:{'a' * 64}\nsound==2.0 --hash=sha256:{'b' * 64}\n"
FINDING = {
    "vulns": [
        {
            "id": "PYSEC-2026-1",
            "summary": "it leaks",
            "affected": [
                {
                    "package": {"name": "leaky", "ecosystem": "PyPI"},
                    "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}],
                }
            ],
        }
    ]
}


@dataclass
class Osv:
    """A stand-in for OSV: what it was asked, and what it answers about which package."""

    asked: list[tuple[str, str]] = field(default_factory=list)
    findings: dict[str, Any] = field(default_factory=dict)
    status: int = 200


class Handler(BaseHTTPRequestHandler):
    osv: Osv

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.osv.asked.append((query["package"]["name"], query["version"]))
        body = json.dumps(self.osv.findings.get(query["package"]["name"], {})).encode()
        self.send_response(self.osv.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - its name there
        pass


@pytest.fixture
def osv(monkeypatch: pytest.MonkeyPatch) -> Iterator[Osv]:
    """Yield a stand-in that the audits of this test ask."""
    Handler.osv = Osv()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        monkeypatch.setenv("OSV_URL", f"http://127.0.0.1:{server.server_port}/v1/query")
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Handler.osv
        server.shutdown()
        thread.join(10)


def audit(folder: Path, *, pins: str = "", url: str = "") -> tuple[int, str]:
    """Return exit status and words of the audit of these pins, or of all that is locked; it remembers in the folder."""
    asked = ["--osv-url", url or os.environ["OSV_URL"], "--memory", str(folder / "memory")]
    (folder / "pinned.txt").write_text(pins)
    command = [sys.executable, str(ROOT / "tools" / "audit"), *asked, *([folder / "pinned.txt"] if pins else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_known_vulnerability_fails_and_is_named(osv: Osv, tmp_path: Path) -> None:
    osv.findings["leaky"] = FINDING
    for _ in range(2):  # a finding is never remembered as if there were none
        status, words = audit(tmp_path, pins=PIN)
        assert (status, words.count("\n")) == (1, 2)
        assert "leaky 1.0: PYSEC-2026-1, mended in 1.1: it leaks" in words
        assert "sound" not in words


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1/query", ""], ids=["refused", "fault"])
def test_without_the_advisories_nothing_fails_but_it_is_said(url: str, osv: Osv, tmp_path: Path) -> None:
    osv.status = 503
    status, words = audit(tmp_path, pins=PIN, url=url)
    assert status == 0
    assert words.startswith(f"· pip-audit (NOT AUDITED: {url or os.environ['OSV_URL']} cannot be asked: ")
    assert not (tmp_path / "memory").exists()
