"""Sessions with PostgreSQL are encrypted where the server can, and are refused where it is not who it should be."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rowferry.db.connection import connect
from support.postgres.ordinary import as_owner, ordinary_postgres
from support.postgres.servers import make_schema
from support.processes.cli import Run, refused
from support.processes.processes import wait_for
from support.processes.worker_process import WorkerProcess
from support.s3.tls import Authority, Certificate, give_to_postgres

SESSION = """
select s.ssl, s.version, s.client_dn from pg_stat_ssl as s where s.pid = pg_backend_pid()
"""
SESSIONS = """
select a.application_name, s.ssl from pg_stat_activity as a inner join pg_stat_ssl as s using (pid)
where a.application_name like 'rowferry%'
"""


@dataclass(frozen=True)
class Secure:
    """A PostgreSQL that speaks TLS, and the certificates around it."""

    dsn: str
    bundle: Path
    """Of the CA that has signed the server's certificate."""
    strangers: Path
    """Of a CA that has not."""
    client: Certificate

    def at(self, host: str) -> str:
        return self.dsn.replace("127.0.0.1", host)


@pytest.fixture(scope="module")
def secure(distribution_postgres: Path) -> Iterator[Secure]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        authority, stranger = Authority(folder, "authority"), Authority(folder, "stranger")
        server = authority.sign("server")
        give_to_postgres(server)
        settings = {
            "ssl": "on",
            "ssl_cert_file": str(server.certificate),
            "ssl_key_file": str(server.key),
            "ssl_ca_file": str(authority.bundle),
        }
        with ordinary_postgres(binaries=distribution_postgres, settings=settings) as postgres:
            dsn = as_owner(postgres.dsn())
            make_schema(dsn)
            yield Secure(dsn, authority.bundle, stranger.bundle, authority.sign("rowferry"))


def look() -> dict[str, object]:
    """Return what the server says of a session that rowferry opens."""
    with closing(connect("test", autocommit=True)) as connection:
        row = connection.execute(SESSION.encode()).fetchone()
        assert row is not None
        return row


def test_a_session_is_encrypted_wherever_the_server_can(secure: Secure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", secure.dsn)
    assert look()["ssl"] is True
    assert str(look()["version"]) >= "TLSv1.2"


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
@pytest.mark.parametrize("way", ["url", "words", "variables"])
def test_libpq_s_own_settings_are_passed_through(
    mode: str, way: str, secure: Secure, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = secure.dsn
    if way == "url":
        url += f"?sslmode={mode}&sslrootcert={secure.bundle}"
    elif way == "words":
        parts = conninfo_to_dict(url, sslmode=mode, sslrootcert=str(secure.bundle))
        url = make_conninfo("", **parts)
    else:
        monkeypatch.setenv("PGSSLMODE", mode)
        monkeypatch.setenv("PGSSLROOTCERT", str(secure.bundle))
    monkeypatch.setenv("DATABASE_URL", url)
    assert look()["ssl"] is True


def test_a_client_certificate_is_shown_to_the_server(secure: Secure, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = f"?sslmode=require&sslcert={secure.client.certificate}&sslkey={secure.client.key}"
    monkeypatch.setenv("DATABASE_URL", secure.dsn + shown)
    assert look()["client_dn"] == "/CN=rowferry"


def test_the_system_s_authorities_are_trusted_when_asked_for(secure: Secure, run_rowferry: Run) -> None:
    url = f"{secure.dsn}?sslrootcert=system"
    assert (
        run_rowferry("errors", "--all-migrations", DATABASE_URL=url, SSL_CERT_FILE=str(secure.bundle)).returncode == 0
    )
    refused = run_rowferry("errors", "--all-migrations", DATABASE_URL=url, SSL_CERT_FILE=str(secure.strangers))
    assert (refused.returncode, "certificate verify failed" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("host", "settings", "words"),
    [
        ("127.0.0.1", "sslmode=verify-full&sslrootcert={strangers}", "certificate verify failed"),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert={strangers}", "certificate verify failed"),
        ("localhost", "sslmode=verify-full&sslrootcert={bundle}", 'does not match host name "localhost"'),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert={bundle}.gone", 'root certificate file "'),
        ("127.0.0.1", "sslmode=sure", 'invalid sslmode value: "sure"'),
    ],
)
def test_a_server_that_cannot_be_trusted_is_refused_in_one_sentence(
    host: str, settings: str, words: str, secure: Secure, run_rowferry: Run
) -> None:
    named = settings.format(bundle=secure.bundle, strangers=secure.strangers)
    for command in ("errors", "worker"):
        said = refused(run_rowferry(command, DATABASE_URL=f"{secure.at(host)}?{named}"))
        assert said.startswith("rowferry: PostgreSQL cannot be reached: ")
        assert words in said


def test_a_host_that_does_not_match_passes_where_only_the_authority_is_asked_for(
    secure: Secure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"{secure.at('localhost')}?sslmode=verify-ca&sslrootcert={secure.bundle}")
    assert look()["ssl"] is True


@pytest.mark.parametrize("mode", ["require", "verify-full"])
def test_a_server_without_tls_is_refused_where_tls_is_asked_for(mode: str, database: str, run_rowferry: Run) -> None:
    trusted = "&sslrootcert=system" if mode == "verify-full" else ""
    done = refused(run_rowferry("errors", "--all-migrations", DATABASE_URL=f"{database}?sslmode={mode}{trusted}"))
    assert "server does not support SSL, but SSL was required" in done


def test_every_session_of_a_worker_is_encrypted(
    secure: Secure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"{secure.dsn}?sslmode=verify-full&sslrootcert={secure.bundle}")
    worker = WorkerProcess([], dict(os.environ), tmp_path / "worker.log")
    try:
        with psycopg.connect(secure.dsn, autocommit=True) as connection:

            def sessions() -> list[tuple[str, bool]]:
                return connection.execute(SESSIONS.encode()).fetchall()

            wait_for(lambda: len(sessions()) >= 2)  # a slot and the ledger
            assert {encrypted for _, encrypted in sessions()} == {True}
    finally:
        worker.kill()
