"""A worker's environment may bound where plans send objects: who may enqueue decides the rest."""

import asyncio
import socket
from typing import Any

import pytest
from msgspec.structs import replace

from rowferry.errors import ServerNotTrusted, UsageError
from rowferry.http.connect import Connector
from rowferry.http.proxy import Proxy
from rowferry.plan import ProductionSide
from rowferry.s3.access.endpoint import refuse_foreign_endpoint, resolve_endpoint
from rowferry.s3.client import open_object_client
from support.entries.migration import Migration

SIDE = ProductionSide(bucket="pictures", endpoint_url="https://s3.example.com:9000", region="eu")


HERE = "https://s3.example.com:9000"
ALLOWED = (
    (SIDE, ""),
    (SIDE, HERE),
    (SIDE, f"https://elsewhere.example.com, {HERE}/"),
    (SIDE, f"{HERE}/pictures"),
    (replace(SIDE, endpoint_url=None, region="eu-central-1"), "https://s3.eu-central-1.amazonaws.com"),
)
FOREIGN = ("http://s3.example.com:9000", "https://s3.example.com", f"{HERE}/other", "https://s3.example")


def test_what_is_allowed_goes_on_and_all_else_is_refused() -> None:
    for side, allowed in ALLOWED:
        refuse_foreign_endpoint(side, {"ROWFERRY_ALLOWED_ENDPOINTS": allowed})
    for allowed in FOREIGN:
        with pytest.raises(UsageError, match="is not among those that ROWFERRY_ALLOWED_ENDPOINTS allows"):
            refuse_foreign_endpoint(SIDE, {"ROWFERRY_ALLOWED_ENDPOINTS": allowed})


def test_a_migration_to_elsewhere_is_set_aside_before_anything_is_sent(migration: Migration) -> None:
    migration.given(1)
    ended = migration.run("worker", "--until-empty", ROWFERRY_ALLOWED_ENDPOINTS="https://s3.example.com")
    assert ended.returncode == 2
    assert "is not among those that ROWFERRY_ALLOWED_ENDPOINTS allows" in ended.stderr
    assert migration.statuses() == {"INIT"}
    assert migration.production.listing() == {}


METADATA = ("169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "100.100.100.200")
METADATA += ("2852039166", "0xa9fea9fe", "169.254.43518", "169.254.169.254.", "[fd20:ce::254]", "168.63.129.16")


@pytest.mark.parametrize("host", METADATA)
def test_a_link_local_address_is_no_endpoint_unless_it_is_named(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata service of a cloud answers there, with the credentials of the host."""
    side = replace(SIDE, endpoint_url=f"http://{host}/latest")
    with pytest.raises(UsageError, match="link-local or metadata address"):
        resolve_endpoint(side)
    monkeypatch.setenv("ROWFERRY_ALLOWED_ENDPOINTS", f"http://{host}/latest")
    assert resolve_endpoint(side).is_named


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1%eth0", "fd00:ec2::254"])
def test_a_name_that_leads_to_one_is_refused_before_a_connection(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_up(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80))]

    async def connect() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
        await Connector("s3.example.com", 80, tls=None, proxy=None).connect(asyncio.Protocol())

    with pytest.raises(ServerNotTrusted, match="leads to a link-local or metadata address"):
        asyncio.run(connect())


def test_a_proxy_may_have_such_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names it, and no plan can: nodes of clusters have one at theirs."""

    async def look_up(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.1.1", 9))]

    async def connect(*_: Any, **__: Any) -> None:
        raise ConnectionRefusedError

    async def try_it() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
        monkeypatch.setattr("aiohappyeyeballs.start_connection", connect)
        await Connector("s3.example.com", 80, tls=None, proxy=Proxy("proxy", 9)).connect(asyncio.Protocol())

    with pytest.raises(ConnectionRefusedError):
        asyncio.run(try_it())


def test_a_session_token_goes_to_another_host_encrypted_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "SESSION_TOKEN": "t"}.items():
        monkeypatch.setenv(f"ROWFERRY_PRODUCTION_{name}", value)
    far = replace(SIDE, endpoint_url="http://s3.example.com")
    with pytest.raises(UsageError, match=r"session token .* would be sent to http://s3.example.com unencrypted"):
        open_object_client(far)
    for side in (
        SIDE,
        replace(SIDE, endpoint_url="http://127.0.0.1:9"),
        replace(SIDE, endpoint_url="http://localhost"),
    ):
        open_object_client(side).close()
    monkeypatch.setenv("ROWFERRY_ALLOWED_ENDPOINTS", "http://s3.example.com/pictures")
    open_object_client(far).close()
    monkeypatch.delenv("ROWFERRY_ALLOWED_ENDPOINTS")
    monkeypatch.delenv("ROWFERRY_PRODUCTION_SESSION_TOKEN")
    open_object_client(far).close()
