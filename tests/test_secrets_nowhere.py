"""No secret is ever seen: not in a log, a table, a session, a metric, a span, a process title or an error.

One test runs whole migrations with secrets that nobody could mistake, and searches every place; the others plant a
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

from haystack import Haystack, forms_of
from processes import wait_for
from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.s3_servers import S3Server, VersityServer
from scrape import fetch
from secret_stage import LOUD, SECRETS, UNIQUE, Stage
from secret_tour import MARKS, fail, look_and_repair, prepare_and_plan, work
from servers import find_versitygw
from stand_in import StandIn, answer


@pytest.fixture(scope="module")
def postgres() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(password=SECRETS["password of the database"], settings=LOUD) as server:
        yield server


@pytest.fixture(scope="module")
def legacy_server() -> Iterator[S3Server]:
    """A server that checks secrets, and has the distinctive one."""
    program = find_versitygw()
    if program is None:
        pytest.skip("versitygw is not here: `make test` builds it where `go` is installed")
    server = VersityServer(program)
    server.secret_key = SECRETS["legacy secret"]
    with server:
        yield server


@pytest.fixture
def stage(tmp_path: Path, postgres: EmbeddedPostgres, legacy_server: S3Server, moto: S3Server) -> Stage:
    return Stage(tmp_path, postgres, legacy_server, moto)


@pytest.mark.timeout(1200)
def test_no_secret_is_seen_anywhere(stage: Stage, postgres: EmbeddedPostgres, legacy_server: S3Server) -> None:
    haystack = Haystack()
    with haystack.watching(stage.dsn), haystack.collecting_spans() as spans:
        prepare_and_plan(stage, haystack, legacy_server)
        work(stage, haystack, spans)
        look_and_repair(stage, haystack)
        fail(stage, haystack)
    haystack.add_tables(stage.dsn)
    haystack.add_files(stage.work)
    haystack.add("server log", (postgres.folder / "server.log").read_text(errors="replace"))
    assert [place for place, mark in MARKS.items() if mark not in haystack.text(place)] == []
    assert haystack.find(SECRETS) == []


# The search itself

PLANTED = f"planted+/% secret {UNIQUE}"


def plant_in_a_table(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(stage.dsn, autocommit=True) as connection:
        plan = json.dumps({"legacy": {"password": PLANTED}})
        connection.execute("insert into rowferry.migration (name, plan) values ('planted', %s)", (plan,))
        haystack.add_tables(stage.dsn)
        connection.execute("delete from rowferry.migration where name = 'planted'")


def plant_in_a_session(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with haystack.watching(stage.dsn), psycopg.connect(stage.dsn, application_name=PLANTED[:60]):
        wait_for(lambda: PLANTED[:60] in haystack.text("activity"))


def plant_in_a_query(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with haystack.watching(stage.dsn), psycopg.connect(stage.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("select {}").format(PLANTED))
        wait_for(lambda: "planted" in haystack.text("activity"))


def plant_in_the_server_log(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(stage.dsn, autocommit=True) as connection:
        connection.execute("select %s", (PLANTED,))
    haystack.add("server log", (postgres.folder / "server.log").read_text(errors="replace"))


def plant_in_a_command_line(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    script = "import sys; sys.stdin.read()"
    with (
        haystack.watching(stage.dsn),
        subprocess.Popen([sys.executable, "-c", script, PLANTED], stdin=subprocess.PIPE) as process,
    ):
        wait_for(lambda: "planted" in haystack.text("process cmdline"))
        process.kill()


def plant_in_a_file(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    (stage.work / "deep").mkdir()
    (stage.work / "deep" / "worker.log").write_text(json.dumps({"error": PLANTED}))
    haystack.add_files(stage.work)


def plant_in_metrics(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with StandIn(answer(200, f'rowferry_build_info{{version="{PLANTED}"}} 1\n'.encode())) as server:
        haystack.add("metrics", fetch(int(server.endpoint_url.rpartition(":")[2]), "/metrics")[1])


def plant_in_a_span(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    with haystack.collecting_spans() as url, urllib.request.urlopen(url, data=PLANTED.encode(), timeout=10):
        pass


def plant_in_an_error(haystack: Haystack, stage: Stage, postgres: EmbeddedPostgres) -> None:
    stage.run(haystack, "status", f"--{PLANTED}", expected=2)


PLANTS: dict[str, Callable[[Haystack, Stage, EmbeddedPostgres], None]] = {
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
def initialised(stage: Stage) -> Stage:
    stage.run(Haystack(), "init")
    return stage


@pytest.mark.parametrize("place", PLANTS)
def test_a_planted_secret_is_found(place: str, initialised: Stage, postgres: EmbeddedPostgres) -> None:
    haystack = Haystack()
    secrets = {"planted": PLANTED[:60], "other": f"other {UNIQUE}"}
    PLANTS[place](haystack, initialised, postgres)
    assert (place, "planted") in haystack.find(secrets)
    assert "other" not in {name for _, name in haystack.find(secrets)}


def test_a_secret_in_a_query_is_found(initialised: Stage, postgres: EmbeddedPostgres) -> None:
    haystack = Haystack()
    plant_in_a_query(haystack, initialised, postgres)
    assert ("activity", "planted") in haystack.find({"planted": PLANTED})


@pytest.mark.parametrize("disguise", range(5))
def test_a_secret_is_found_however_it_was_encoded(disguise: int) -> None:
    forms: list[Any] = sorted(forms_of('a+/% "secret"'))
    assert len(forms) >= 5
    haystack = Haystack()
    haystack.add("here", f"before {forms[disguise]} after")
    assert haystack.find({"it": 'a+/% "secret"'}) == [("here", "it")]
