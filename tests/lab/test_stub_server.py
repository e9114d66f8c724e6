"""The stub of the benches keeps what a copy needs: conditions, sizes, and a rate above which writes are refused."""

import urllib.error
import urllib.request
from email.message import Message

import pytest

from bench.stub_server import StubServer, build_stub

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module", autouse=True)
def _stub() -> None:
    if not build_stub():
        pytest.skip("rowferry-stub is not here: there is no go")


def ask(server: StubServer, method: str, path: str, **headers: str) -> tuple[int, Message]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"{server.endpoint_url}{path}", method=method, headers=named)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers


def test_only_a_written_object_is_found_outside_the_legacy_bucket() -> None:
    with StubServer("-size=1234") as server:
        assert ask(server, "HEAD", "/production/a")[0] == 404
        assert ask(server, "PUT", "/production/a", x_amz_copy_source="/legacy/a")[0] == 200
        status, headers = ask(server, "HEAD", "/production/a")
        assert (status, headers["Content-Length"]) == (200, "1234")
        assert ask(server, "HEAD", "/legacy/b")[1]["ETag"] == headers["ETag"]


def test_a_second_write_under_the_condition_is_refused() -> None:
    with StubServer() as server:
        statuses = [ask(server, "PUT", "/production/a", If_None_Match="*")[0] for _ in range(2)]
        assert statuses == [200, 412]


def test_writes_above_the_rate_are_refused_and_counted() -> None:
    with StubServer("-rate=0.001", "-burst=3000") as server:  # three tokens, and no more within this test
        statuses = [ask(server, "PUT", f"/production/{number}")[0] for number in range(5)]
        assert statuses == [200, 200, 200, 503, 503]
        assert server.read_stats()["refusals"] == 2
