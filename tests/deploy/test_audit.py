"""`make audit` fails on a known vulnerability of a pinned package, and on nothing that the network does."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from support.docs.doc_pages import ROOT

pytestmark = pytest.mark.soak

LOCKED = sorted(path for path in (ROOT / "requirements").glob("*.txt") if path.name != "oldest.txt")
"""All but the lower bounds, which only `make release` installs, to try them."""
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


def test_every_locked_package_is_asked_for_once(osv: Osv, tmp_path: Path) -> None:
    status, words = audit(tmp_path)
    assert status == 0, words
    assert set(Counter(osv.asked).values()) == {1}
    names = {name for name, _ in osv.asked}
    for path in LOCKED:
        pins = re.findall(r"^([a-z0-9][a-z0-9._-]*)==[^;\s]+ \\$", path.read_text(), re.MULTILINE)
        assert {name.replace(".", "-") for name in pins} <= names, path
    assert f"({len(osv.asked)} packages, " in words


def test_a_known_vulnerability_fails_and_is_named(osv: Osv, tmp_path: Path) -> None:
    osv.findings["leaky"] = FINDING
    for _ in range(2):  # a finding is never remembered as if there were none
        status, words = audit(tmp_path, pins=PIN)
        assert (status, words.count("\n")) == (1, 2)
        assert "leaky 1.0: PYSEC-2026-1, mended in 1.1: it leaks" in words
        assert "sound" not in words


def test_what_was_audited_today_is_not_asked_for_again_unless_it_has_changed(osv: Osv, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    assert audit(tmp_path, pins=PIN)[0] == 0
    assert len(osv.asked) == 2
    assert audit(tmp_path, pins=PIN) == (0, "· pip-audit (no known vulnerability, says today's audit)\n")
    assert len(osv.asked) == 2
    memory.write_text(re.sub(r"^[0-9-]+", "2026-01-01", memory.read_text()))
    audit(tmp_path, pins=PIN)
    assert len(osv.asked) == 4
    audit(tmp_path, pins=PIN.replace("2.0", "2.1"))
    assert osv.asked[4:] == [("leaky", "1.0"), ("sound", "2.1")]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1/query", ""], ids=["refused", "fault"])
def test_without_the_advisories_nothing_fails_but_it_is_said(url: str, osv: Osv, tmp_path: Path) -> None:
    osv.status = 503
    status, words = audit(tmp_path, pins=PIN, url=url)
    assert status == 0
    assert words.startswith(f"· pip-audit (NOT AUDITED: {url or os.environ['OSV_URL']} cannot be asked: ")
    assert not (tmp_path / "memory").exists()


def test_a_file_that_cannot_be_audited_fails(osv: Osv, tmp_path: Path) -> None:
    status, words = audit(tmp_path, pins="leaky>=1.0\n")
    assert (status, osv.asked) == (1, [])
    assert "hashed requirements" in words
