"""The short form of `make test-servers`: two servers that differ from versitygw and moto in what they honour.

`make test-all` streams from moto to gofakes3; nightly, both servers are tried in each direction, and those whose
listings are compressed, or begin an upload by another word.
"""

from collections.abc import Iterator
from itertools import product
from typing import get_args

import pytest

from conformance.ask import Facts, ask_server
from conformance.checks import CHECKS
from conformance.commands import COMMANDS
from conformance.environment import Direction, make_environment
from conformance.page import BEGIN, END, PAGE, fill_in, read_results
from conformance.run import run_checks
from rowferry_lab.servers.s3_servers import S3Server
from support.postgres.servers import DatabaseServers
from support.s3.servers import SERVERS, running_server

SHORT = [check for check in CHECKS if check.name != "60 MiB by parts"]
NAMES = ("gofakes3", "seaweedfs")
LISTED = (("minio", "to"), ("rclone", "to"), ("nginx", "within"), ("apache", "within"))
CASES = [
    pytest.param(*case, id="-".join(case), marks=pytest.mark.xdist_group(case[0]))
    for case in (*product(NAMES, get_args(Direction)), *LISTED)
]


@pytest.fixture(scope="module")
def known(request: pytest.FixtureRequest) -> Iterator[tuple[S3Server, Facts]]:
    """A running server, and what it does by itself."""
    with running_server(request.param) as server:
        yield server, ask_server(server)


@pytest.fixture(scope="module")
def moto_known(moto: S3Server) -> tuple[S3Server, Facts]:
    return moto, ask_server(moto)


@pytest.mark.parametrize(("known", "direction"), CASES, indirect=["known"])
@pytest.mark.by_day("gofakes3-to")
def test_a_server_of_others_gets_no_wrong_object_and_no_wrong_row(
    direction: Direction,
    known: tuple[S3Server, Facts],
    moto_known: tuple[S3Server, Facts],
    database_servers: DatabaseServers,
) -> None:
    names = ("rerun", "objects", "resume") if (known[1].name, direction) in LISTED else ("rerun",)
    commands = {name: COMMANDS[name] for name in names}
    sides = {"within": (known, known), "from": (known, moto_known), "to": (moto_known, known)}[direction]
    with make_environment(direction, *sides, database_servers) as setup:
        wrong = {each.check: each.wrong for each in run_checks(setup, SHORT, commands) if each.wrong}
    assert wrong == {}


def test_the_page_shows_the_results_and_none_is_wrong() -> None:
    page, results = PAGE.read_text(encoding="utf-8"), read_results()
    assert list(results)[: len(SERVERS)] == list(SERVERS)
    assert fill_in(page, results) == page
    assert [each for result in results.values() for each in result["findings"] if each["wrong"]] == []


def test_a_wrong_is_never_shown_as_a_limit() -> None:
    finding = {"direction": "to", "pair": "a → b", "check": "tags", "limits": ["has no tags"], "wrong": "they are lost"}
    behaviour = {"If-None-Match of PutObject": "ignored"}
    result = {"version": "1", "when": "2026-11-22", "seconds": 1, "behaviour": behaviour, "findings": [finding]}
    absent = {"version": "–", "when": "–", "reason": "there is no go"}
    page = fill_in(f"{BEGIN}\n{END}", {"ceph": result, "minio": absent})
    assert "| tags | **wrong** | not run |" in page
    assert "not run: there is no go" in page
    page = fill_in(f"{BEGIN}\n{END}", {"ceph": {**result, "findings": [{**finding, "wrong": None}]}})
    assert "| tags | limit 1 |" in page
    assert "1. Ceph: has no tags" in page
