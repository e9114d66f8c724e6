"""No secret is ever seen: not in a log, a table, a session, a metric, a span, a process title or an error.

One test runs whole migrations with unmistakable secrets, and searches every place; the others plant a
secret in each of these places, and the same search finds it there.
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import S3Server, VersityServer
from support.postgres.ordinary import OWNER, administrator, ordinary_postgres
from support.processes.processes import wait_for
from support.processes.scrape import fetch
from support.s3.buckets import find_versitygw
from support.s3.stand_in import StandIn, answer
from support.secrets.environment import LOUD, SECRETS, UNIQUE, Environment
from support.secrets.scanner import SecretScanner, forms_of
from support.secrets.tour import MARKS, fail, look_and_repair, prepare_and_plan, work


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
    with scanner.watching(setup.dsn), scanner.collecting_spans() as spans:
        prepare_and_plan(setup, scanner, legacy_server)
        work(setup, scanner, spans)
        look_and_repair(setup, scanner)
        fail(setup, scanner)
    scanner.add_tables(setup.dsn)
    scanner.add_files(setup.work)
    scanner.add("server log", (postgres.folder / "server.log").read_text(errors="replace"))
    assert [place for place, mark in MARKS.items() if mark not in scanner.text(place)] == []
    assert scanner.find(SECRETS) == []


# The search itself

PLANTED = f"planted+/% secret {UNIQUE}"


def plant_in_a_table(scanner: SecretScanner, setup: Environment, postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(setup.dsn, autocommit=True) as connection:
        plan = json.dumps({"legacy": {"password": PLANTED}})
        connection.execute("insert into rowferry.migration (name, plan) values ('planted', %s)", (plan,))
        scanner.add_tables(setup.dsn)
        connection.execute("delete from rowferry.migration where name = 'planted'")


def plant_in_a_session(scanner: SecretScanner, setup: Environment, postgres: EmbeddedPostgres) -> None:
    with scanner.watching(setup.dsn), psycopg.connect(setup.dsn, application_name=PLANTED[:60]):
        wait_for(lambda: PLANTED[:60] in scanner.text("activity"))


def plant_in_a_query(scanner: SecretScanner, setup: Environment, postgres: EmbeddedPostgres) -> None:
    with scanner.watching(setup.dsn), psycopg.connect(setup.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("select {}").format(PLANTED))
        wait_for(lambda: PLANTED in scanner.text("activity"))


def plant_in_the_server_log(scanner: SecretScanner, setup: Environment, postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(setup.dsn, autocommit=True) as connection:
        connection.execute("select %s", (PLANTED,))
    scanner.add("server log", (postgres.folder / "server.log").read_text(errors="replace"))


def plant_in_a_command_line(scanner: SecretScanner, setup: Environment, postgres: EmbeddedPostgres) -> None:
    script = "import sys; sys.stdin.read()"
    with (
        scanner.watching(setup.dsn),
        subprocess.Popen([sys.executable, "-c", script, PLANTED], stdin=subprocess.PIPE) as process,
    ):
        wait_for(lambda: PLANTED in scanner.text("process cmdline"))
        process.kill()


def plant_in_a_file(scanner: SecretScanner, setup: Environment, postgres: EmbeddedPostgres) -> None:
    (setup.work / "deep").mkdir()
    (setup.work / "deep" / "worker.log").write_text(json.dumps({"error": PLANTED}))
    scanner.add_files(setup.work)


def plant_in_metrics(scanner: SecretScanner, setup: Environment, postgres: EmbeddedPostgres) -> None:
    with StandIn(answer(200, f'rowferry_build_info{{version="{PLANTED}"}} 1\n'.encode())) as server:
        scanner.add("metrics", fetch(int(server.endpoint_url.rpartition(":")[2]), "/metrics")[1])


def plant_in_a_span(scanner: SecretScanner, setup: Environment, postgres: EmbeddedPostgres) -> None:
    with scanner.collecting_spans() as url, urllib.request.urlopen(url, data=PLANTED.encode(), timeout=10):
        pass


def plant_in_an_error(scanner: SecretScanner, setup: Environment, postgres: EmbeddedPostgres) -> None:
    setup.run(scanner, "status", f"--{PLANTED}", expected=2)


PLANTS: dict[str, Callable[[SecretScanner, Environment, EmbeddedPostgres], None]] = {
    "table migration": plant_in_a_table,
    "activity": plant_in_a_session,
    "server log": plant_in_the_server_log,
    "process cmdline": plant_in_a_command_line,
    "file deep/worker.log": plant_in_a_file,
    "metrics": plant_in_metrics,
    "span": plant_in_a_span,
    "output status": plant_in_an_error,
}


@pytest.fixture
def initialised(setup: Environment) -> Environment:
    setup.run(SecretScanner(), "init")
    return setup


@pytest.mark.by_day("server log", "process cmdline", "metrics")
@pytest.mark.parametrize("place", PLANTS)
def test_a_planted_secret_is_found(place: str, initialised: Environment, postgres: EmbeddedPostgres) -> None:
    scanner = SecretScanner()
    secrets = {"planted": PLANTED[:60], "other": f"other {UNIQUE}"}
    PLANTS[place](scanner, initialised, postgres)
    assert (place, "planted") in scanner.find(secrets)
    assert "other" not in {name for _, name in scanner.find(secrets)}


def test_a_secret_in_a_query_is_found(initialised: Environment, postgres: EmbeddedPostgres) -> None:
    scanner = SecretScanner()
    plant_in_a_query(scanner, initialised, postgres)
    assert ("activity", "planted") in scanner.find({"planted": PLANTED})


@pytest.mark.parametrize("disguise", range(5))
def test_a_secret_is_found_however_it_was_encoded(disguise: int) -> None:
    forms: list[Any] = sorted(forms_of('a+/% "secret"'))
    assert len(forms) >= 5
    scanner = SecretScanner()
    scanner.add("here", f"before {forms[disguise]} after")
    assert scanner.find({"it": 'a+/% "secret"'}) == [("here", "it")]
