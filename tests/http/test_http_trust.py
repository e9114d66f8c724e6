"""Authorities and proxies are found by one rule, for the hot path and for boto3."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from botocore.credentials import Credentials

from rowferry.errors import SideFault, Unreachable, UsageError
from rowferry.http.proxy import find_proxy
from rowferry.http.trust import VARIABLES, trust
from rowferry.plan import ProductionSide
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.boto import open_bucket
from support.s3.clients import GET, HEAD, ask, opened, side_of
from support.s3.stand_in import StandIn, answer
from support.s3.tls import Authority, serving_context


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("trust"), "authority")


@pytest.fixture
def server(authority: Authority) -> Iterator[StandIn]:
    with StandIn(answer(200), tls=serving_context(authority.sign("server"))) as server:
        yield server


@pytest.mark.parametrize("variable", VARIABLES)
def test_each_variable_names_authorities_for_both_clients(
    variable: str, authority: Authority, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(authority.bundle))
    with opened(side_of(server)) as client:
        assert ask(client, HEAD).error is None
    with open_bucket(side_of(server), Credentials("AK", "SK")) as bucket:  # type: ignore[arg-type]
        bucket.check_exists()


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_file_without_certificates_is_refused_with_the_name_of_its_variable(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "none.pem"))
    with pytest.raises(UsageError, match=f"^{variable} names .*none.pem"):
        resolve_endpoint(ProductionSide("b", endpoint_url="https://127.0.0.1"))


def test_authorities_need_be_no_stricter_than_for_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 makes its default context strict; this one is made so here."""
    make = ssl.create_default_context

    def make_strict(**given: str | None) -> ssl.SSLContext:
        context = make(**given)  # type: ignore[arg-type]
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", make_strict)
    context = trust(None)
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@contextmanager
def tunnelling(refusal: bytes = b"") -> Iterator[tuple[str, list[str]]]:
    """A proxy that knows CONNECT only; yields where it listens, and the heads of the requests that it got."""
    heads: list[str] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=_accept, args=(listener, heads, refusal), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", heads
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, heads: list[str], refusal: bytes) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_tunnel, args=(connection, heads, refusal), daemon=True).start()


def _tunnel(connection: socket.socket, heads: list[str], refusal: bytes) -> None:
    with suppress(OSError), connection:
        head = connection.recv(65536).decode()
        if not head:
            return
        heads.append(head)
        if refusal:
            connection.sendall(refusal)
            return
        host, _, port = heads[-1].split()[1].rpartition(":")
        with socket.create_connection((host, int(port))) as beyond:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_pump, args=(beyond, connection), daemon=True)
            back.start()
            _pump(connection, beyond)
            back.join(10)


def _pump(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    with suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)


def test_an_https_server_is_reached_through_a_proxy(
    authority: Authority, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.bundle))
    with tunnelling() as (place, heads):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:s%40y@{place}")
        with opened(side_of(server)) as client:
            assert ask(client, HEAD).error is None
            assert ask(client, GET).error is None
    assert len(heads) == 1
    assert heads[0].startswith(f"CONNECT {server.endpoint_url.removeprefix('https://')} HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6c0B5\r\n" in heads[0]
    assert "Proxy-Authorization" not in server.requests[0]


def test_an_http_server_is_reached_through_a_proxy_that_reads_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    with StandIn(answer(200)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.endpoint_url)
        with opened(ProductionSide("bucket", endpoint_url="http://s3.example:9000")) as client:
            assert ask(client, HEAD).error is None
    assert proxy.request_lines == ["HEAD http://s3.example:9000/bucket/k HTTP/1.1"]
    assert "\r\nHost: s3.example:9000\r\n" in proxy.requests[0]


def test_no_proxy_is_asked_for_what_no_proxy_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with StandIn(answer(200)) as server, opened(side_of(server)) as client:
        assert ask(client, HEAD).error is None


@pytest.mark.parametrize(("status", "expected"), [(407, SideFault), (403, SideFault), (502, Unreachable)])
def test_a_proxy_that_refuses_is_named(
    status: int, expected: type[Exception], server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tunnelling(b"HTTP/1.1 %d No\r\n\r\n" % status) as (place, _):
        monkeypatch.setenv("https_proxy", f"http://{place}")
        with opened(side_of(server)) as client:
            error = ask(client, HEAD).error
    assert type(error) is expected
    assert place in str(error)


@pytest.mark.parametrize("url", ["socks5://me:secret@proxy:1080", "https://proxy", "http://", "http://proxy:x"])
def test_a_proxy_that_cannot_be_used_is_refused_in_one_sentence(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", url)
    with pytest.raises(UsageError, match=r"^HTTPS_PROXY must look like http://host:port") as refused:
        find_proxy("https", "s3.example")
    assert "secret" not in str(refused.value)
