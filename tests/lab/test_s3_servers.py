"""S3 servers of one's own start, keep what they are given, and never stay behind."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rowferry_lab.servers.s3_servers import FakeS3Server, MotoServer, S3Server, VersityServer
from support.processes.processes import is_running, wait_for
from support.s3.buckets import find_versitygw

START_AND_WAIT = """
import sys
from rowferry_lab.servers.s3_servers import MotoServer
with MotoServer() as server:
    print(server.pid, flush=True)
    sys.stdin.read()
"""


def make_server(name: str) -> S3Server:
    if name != "versitygw":
        return MotoServer() if name == "moto" else FakeS3Server()
    program = find_versitygw()
    if program is None:
        pytest.skip("versitygw is not here: `make servers` builds it where `go` is installed")
    return VersityServer(program)


@pytest.mark.parametrize("name", ["fake", "moto", "versitygw"])
def test_a_closed_server_leaves_neither_process_nor_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with make_server(name) as server:
        pid = server.pid
        assert is_running(pid)
        assert list(tmp_path.iterdir())
    assert not is_running(pid)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("deadly", [signal.SIGTERM, signal.SIGKILL])
def test_a_parent_that_is_killed_leaves_no_server(deadly: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", START_AND_WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.send_signal(deadly)
    wait_for(lambda: not is_running(pid))
