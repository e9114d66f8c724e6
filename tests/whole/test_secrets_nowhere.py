"""No secret is ever seen: not in a log, a table, a session, a metric, a process title or an error.

Whole migrations run with unmistakable secrets; in each place that is searched stands something that was to be seen.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import S3Server, VersityServer
from support.postgres.ordinary import OWNER, administrator, ordinary_postgres
from support.s3.buckets import find_versitygw
from support.secrets.environment import LOUD, MARKS, SECRETS, Environment, fail, look_and_repair, prepare_and_plan, work
from support.secrets.scanner import SecretScanner, forms_of


@pytest.fixture(scope="module")
def postgres() -> Iterator[EmbeddedPostgres]:
    with ordinary_postgres(password=SECRETS["password of the database"], settings=LOUD) as server:
        with administrator(server.dsn()) as connection:  # `prepare` makes a role
            connection.execute(sql.SQL("alter role {} createrole").format(sql.Identifier(OWNER)))
        yield server


@pytest.fixture(scope="module")
def legacy_server() -> Iterator[S3Server]:
    """A server that checks secrets, and has the distinctive one."""
    program = find_versitygw()
    if program is None:
        pytest.skip("versitygw is not here: `make servers` builds it where `go` is installed")
    server = VersityServer(program)
    server.secret_key = SECRETS["legacy secret"]
    with server:
        yield server


@pytest.fixture
def setup(tmp_path: Path, postgres: EmbeddedPostgres, legacy_server: S3Server, moto: S3Server) -> Environment:
    return Environment(tmp_path, postgres, legacy_server, moto)


@pytest.mark.timeout(1200)
def test_no_secret_is_seen_anywhere(setup: Environment, postgres: EmbeddedPostgres, legacy_server: S3Server) -> None:
    scanner = SecretScanner()
    with scanner.watching(setup.dsn):
        prepare_and_plan(setup, scanner, legacy_server)
        work(setup, scanner)
        look_and_repair(setup, scanner)
        fail(setup, scanner)
    scanner.add_tables(setup.dsn)
    scanner.add_files(setup.work)
    scanner.add("server log", (postgres.folder / "server.log").read_text(errors="replace"))
    assert [place for place, mark in MARKS.items() if mark not in scanner.text(place)] == []
    assert scanner.find(SECRETS) == []


@pytest.mark.parametrize("disguise", range(5))
def test_a_secret_is_found_however_it_was_encoded(disguise: int) -> None:
    forms: list[Any] = sorted(forms_of('a+/% "secret"'))
    assert len(forms) >= 5
    scanner = SecretScanner()
    scanner.add("here", f"before {forms[disguise]} after")
    assert scanner.find({"it": 'a+/% "secret"'}) == [("here", "it")]
