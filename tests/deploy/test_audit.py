"""`make audit` fails on a known vulnerability of a pinned package, and on nothing that the network does."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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
    """A stand-in for OSV: what it was asked, and what it answers to whom."""

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    findings: dict[str, Any] = field(default_factory=dict)
    status: int = 200


@contextmanager
def serving(osv: Osv) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            osv.asked.append((query["package"]["name"], query["version"]))
            body = json.dumps(osv.findings.get(query["package"]["name"], {})).encode()
            self.send_response(osv.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - its name there
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        osv.url = f"http://127.0.0.1:{server.server_port}/v1/query"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join(10)


@pytest.fixture
def osv() -> Iterator[Osv]:
    osv = Osv()
    with serving(osv):
        yield osv


def audit(osv_url: str, memory: Path, *files: Path) -> tuple[int, str]:
    """Return exit status and words of the audit."""
    command = [sys.executable, str(ROOT / "tools" / "audit"), "--osv-url", osv_url, "--memory", str(memory)]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, timeout=100, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def write(folder: Path, text: str) -> Path:
    path = folder / "pinned.txt"
    path.write_text(text)
    return path


def test_every_locked_package_is_asked_for_once(osv: Osv, tmp_path: Path) -> None:
    status, words = audit(osv.url, tmp_path / "memory")
    assert status == 0, words
    assert set(Counter(osv.asked).values()) == {1}
    names = {name for name, _ in osv.asked}
    for path in LOCKED:
        pins = re.findall(r"^([a-z0-9][a-z0-9._-]*)==[^;\s]+ \\$", path.read_text(), re.MULTILINE)
        assert {name.replace(".", "-") for name in pins} <= names, path
    assert f"({len(osv.asked)} packages, " in words


def test_a_known_vulnerability_fails_and_is_named(osv: Osv, tmp_path: Path) -> None:
    osv.findings["leaky"] = FINDING
    pinned = write(tmp_path, PIN)
    for _ in range(2):  # a finding is never remembered as if there were none
        status, words = audit(osv.url, tmp_path / "memory", pinned)
        assert (status, words.count("\n")) == (1, 2)
        assert "leaky 1.0: PYSEC-2026-1, mended in 1.1: it leaks" in words
        assert "sound" not in words


def test_what_was_audited_today_is_not_asked_for_again_unless_it_has_changed(osv: Osv, tmp_path: Path) -> None:
    pinned, memory = write(tmp_path, PIN), tmp_path / "memory"
    assert audit(osv.url, memory, pinned)[0] == 0
    assert len(osv.asked) == 2
    assert audit(osv.url, memory, pinned) == (0, "· pip-audit (no known vulnerability, says today's audit)\n")
    assert len(osv.asked) == 2
    memory.write_text(re.sub(r"^[0-9-]+", "2026-01-01", memory.read_text()))
    audit(osv.url, memory, pinned)
    assert len(osv.asked) == 4
    write(tmp_path, PIN.replace("2.0", "2.1"))
    audit(osv.url, memory, pinned)
    assert osv.asked[4:] == [("leaky", "1.0"), ("sound", "2.1")]


@pytest.mark.parametrize("trouble", ["refused", "fault"])
def test_without_the_advisories_nothing_fails_but_it_is_said(trouble: str, osv: Osv, tmp_path: Path) -> None:
    osv.status = 503
    url = osv.url if trouble == "fault" else "http://127.0.0.1:9/v1/query"
    status, words = audit(url, tmp_path / "memory", write(tmp_path, PIN))
    assert status == 0
    assert words.startswith(f"· pip-audit (NOT AUDITED: {url} cannot be asked: ")
    assert not (tmp_path / "memory").exists()


def test_a_file_that_cannot_be_audited_fails(osv: Osv, tmp_path: Path) -> None:
    status, words = audit(osv.url, tmp_path / "memory", write(tmp_path, "leaky>=1.0\n"))
    assert status == 1
    assert "hashed requirements" in words
    assert osv.asked == []
