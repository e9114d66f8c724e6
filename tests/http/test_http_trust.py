"""Authorities and proxies are found by the rules of boto3."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from rowferry.errors import SideFault, Unreachable, UsageError
from rowferry.http.proxy import find_proxy
from rowferry.http.trust import VARIABLES, trust
from rowferry.plan import ProductionSide
from rowferry.s3.access.endpoint import resolve_endpoint
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
def test_each_variable_names_authorities(
    variable: str, authority: Authority, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(authority.bundle))
    with opened(side_of(server)) as client:
        assert ask(client, HEAD).error is None
    monkeypatch.setenv(variable, str(authority.bundle.with_name("none.pem")))
    with pytest.raises(UsageError, match=f"^{variable} names .*none.pem"):
        resolve_endpoint(side_of(server))


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


def tunnelling(refusal: bytes = b"") -> StandIn:
    """Return a proxy that knows CONNECT only."""

    def tunnel(connection: socket.socket) -> None:
        if refusal:
            connection.sendall(refusal)
            connection.close()
            return
        host, _, port = proxy.requests[-1].split()[1].rpartition(":")
        with socket.create_connection((host, int(port))) as beyond:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=pump, args=(beyond, connection), daemon=True)
            back.start()
            pump(connection, beyond)
            back.join(10)

    proxy = StandIn(tunnel)
    return proxy


def pump(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    with suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)


def test_an_https_server_is_reached_through_a_proxy(
    authority: Authority, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.bundle))
    with tunnelling() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.endpoint_url.replace("://", "://me:s%40y@"))
        with opened(side_of(server)) as client:
            assert ask(client, HEAD).error is None
            assert ask(client, GET).error is None
    (head,) = proxy.requests
    assert head.startswith(f"CONNECT {server.endpoint_url.removeprefix('https://')} HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6c0B5" in head.split("\r\n")
    assert "Proxy-Authorization" not in server.requests[0]


def test_an_http_server_is_reached_through_a_proxy_that_reads_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    with StandIn(answer(200)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.endpoint_url)
        with opened(ProductionSide("bucket", endpoint_url="http://s3.example:9000")) as client:
            assert ask(client, HEAD).error is None
        assert proxy.request_lines == ["HEAD http://s3.example:9000/bucket/k HTTP/1.1"]
        assert "\r\nHost: s3.example:9000\r\n" in proxy.requests[0]
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with StandIn(answer(200)) as server, opened(side_of(server)) as client:
            assert ask(client, HEAD).error is None
        assert len(proxy.requests) == 1


def test_a_proxy_that_refuses_is_named(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    for status, expected in ((407, SideFault), (403, SideFault), (502, Unreachable)):
        with tunnelling(b"HTTP/1.1 %d No\r\n\r\n" % status) as proxy:
            monkeypatch.setenv("https_proxy", proxy.endpoint_url)
            with opened(side_of(server)) as client:
                error = ask(client, HEAD).error
            assert type(error) is expected
            assert proxy.endpoint_url.removeprefix("http://") in str(error)


def test_a_proxy_that_cannot_be_used_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("socks5://me:secret@proxy:1080", "https://proxy", "http://", "http://proxy:x"):
        monkeypatch.setenv("https_proxy", url)
        with pytest.raises(UsageError, match=r"^HTTPS_PROXY must look like http://host:port") as refused:
            find_proxy("https", "s3.example")
        assert "secret" not in str(refused.value)
