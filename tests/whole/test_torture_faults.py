"""That the faults of `make torture` come, and that they are seen where they are counted."""

import errno
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from rowferry_lab.servers.postgres import EmbeddedPostgres
from support.processes.processes import wait_for
from support.s3.request_log import LoggedRequest
from torture.bad_s3 import BadS3
from torture.builder import make_s3_server
from torture.scenarios import SCENARIOS
from torture.scenarios.connections import TOXICS, Line
from torture.scenarios.servers import suppress_full_disk
from torture.symptoms import SYMPTOMS, feel
from torture.toxiproxy import find_toxiproxy, running_toxiproxy

pytestmark = [pytest.mark.timeout(200), pytest.mark.soak]

READ, WRITE = LoggedRequest("GET", "/legacy/a", "", {}), LoggedRequest("PUT", "/production/a", "uploadId=1", {})


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_promises_a_kind_of_fault(name: str) -> None:
    assert SCENARIOS[name].faults


def test_a_bad_server_leaves_it_to_chance_how_often_but_not_whether() -> None:
    rates = {"reset": 0.01, "200 with an error": 0.01}
    with BadS3("http://127.0.0.1:9", 1, rates).running() as bad:
        assert "reset" in [bad._choose(READ) for _ in range(101)]
        assert "200 with an error" not in [bad._choose(READ) for _ in range(400)], "a GET cannot fail like that"
        assert bad._choose(WRITE) == "200 with an error"
        bad.rates = {}
        assert {bad._choose(request) for request in (READ, WRITE) for _ in range(400)} == {None}


@pytest.fixture(scope="module")
def lines() -> Iterator[list[Line]]:
    """The ways to a PostgreSQL and to an S3 server, through toxiproxy."""
    program = find_toxiproxy()
    if program is None:
        pytest.skip("toxiproxy is not here")
    with ExitStack() as until:
        postgres, s3 = until.enter_context(EmbeddedPostgres()), until.enter_context(make_s3_server())
        toxiproxy = until.enter_context(running_toxiproxy(program))
        upstreams = {"postgresql": f"127.0.0.1:{postgres.port}", "s3": urlsplit(s3.endpoint_url).netloc}
        yield [Line(name, toxiproxy, toxiproxy.add_proxy(name, where)) for name, where in upstreams.items()]


@pytest.mark.xdist_group("torture")
def test_an_unspoiled_line_swallows_nothing(lines: list[Line]) -> None:
    for line in lines:
        before = line.toxiproxy.swallowed_bytes(line.server)
        assert feel(line.server, line.address).pieces
        assert line.toxiproxy.swallowed_bytes(line.server) == before


@pytest.mark.xdist_group("torture")
@pytest.mark.parametrize("fault", SYMPTOMS)
def test_a_line_that_lets_all_bytes_through_is_felt_to_be_spoilt(fault: str, lines: list[Line]) -> None:
    kind, attributes = TOXICS[fault]
    for line in lines:
        with line.toxiproxy.toxic(line.server, kind, **attributes):
            wait_for(lambda line=line: SYMPTOMS[fault](feel(line.server, line.address)))


@pytest.mark.xdist_group("torture")
@pytest.mark.parametrize("fault", sorted({"resets", "cut-offs in mid-stream"}))
def test_what_a_spoilt_line_swallows_is_counted(fault: str, lines: list[Line]) -> None:
    kind, attributes = TOXICS[fault]
    attributes = attributes | ({"bytes": 4} if "bytes" in attributes else {})
    for line in lines:
        before = line.toxiproxy.swallowed_bytes(line.server)
        with line.toxiproxy.toxic(line.server, kind, **attributes):
            feel(line.server, line.address)
            wait_for(lambda line=line, before=before: line.toxiproxy.swallowed_bytes(line.server) > before)


def test_only_a_full_disk_is_taken_for_one() -> None:
    with suppress_full_disk():
        raise OSError(errno.ENOSPC, "full")
    with pytest.raises(OSError, match="broken"), suppress_full_disk():
        raise OSError(errno.EIO, "broken")
