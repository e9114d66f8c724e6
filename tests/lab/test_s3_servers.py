"""S3 servers of one's own start, keep what they are given, and never stay behind."""

import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from rowferry.errors import UsageError
from rowferry_lab.servers import s3_servers
from rowferry_lab.servers.s3_servers import FakeS3Server, MotoServer, S3Server, VersityServer
from support.processes.processes import is_running, wait_for
from support.s3.buckets import connect_s3, find_versitygw

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


def test_versitygw_refuses_a_wrong_secret(versitygw: S3Server) -> None:
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        connect_s3(versitygw, secret_key="wrong").list_buckets()


def test_moto_checks_no_secret(moto: S3Server) -> None:
    """So that no test about refused credentials is ever written against it."""
    assert "Buckets" in connect_s3(moto, secret_key="wrong").list_buckets()


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


@pytest.mark.soak
def test_a_port_that_is_taken_meanwhile_is_exchanged_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as rival:
        rival.bind(("127.0.0.1", 0))
        rival.listen()
        taken = rival.getsockname()[1]
        ports = iter([taken, s3_servers.find_free_port()])
        monkeypatch.setattr(s3_servers, "find_free_port", lambda: next(ports))
        with MotoServer() as server:
            assert server.endpoint_url != f"http://127.0.0.1:{taken}"
            assert connect_s3(server).list_buckets()["Buckets"] == []


def test_a_versitygw_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no-such-program"):
        VersityServer(tmp_path / "no-such-program")
