"""Opens connections to one endpoint: name lookup, TCP, a proxy's tunnel, TLS."""

import asyncio
import socket
import ssl
import time
from collections.abc import Sequence
from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from itertools import zip_longest
from typing import Any

import aiohappyeyeballs

from rowferry.errors import ObjectError, ServerFault, ServerNotTrusted, Unreachable
from rowferry.http.proxy import Proxy, open_tunnel

CONNECT_TIMEOUT = timedelta(seconds=10)
"""For name lookup, TCP, tunnel and TLS together."""
NEXT_ADDRESS_AFTER = timedelta(milliseconds=250)
"""The next address is tried beside one that has not answered by then. Source: RFC 8305, section 5."""
LOOKUP_LIFETIME = timedelta(seconds=10)
"""How long a looked-up name is used again: hundreds of connections are opened at once."""

ADDRESSES_AT_ONCE = 4
"""Addresses that are tried for one connection, of both families where there are two. Three that are silent cost three
times NEXT_ADDRESS_AFTER."""
KEEPALIVE_SECONDS, KEEPALIVE_TRIES = 15, 4
"""TCP probes a silent connection this often; it is lost after so many unanswered probes."""
UNACKNOWLEDGED = timedelta(seconds=60)
"""A connection is lost when sent data is not acknowledged for so long."""

_happy_eyeballs: Any = aiohappyeyeballs

_METADATA = [
    ip_network(net) for net in ("fd00:ec2::/32", "fd20:ce::/32", "fd00:c1::/32", "100.100.100.200", "168.63.129.16")
]
"""Of AWS, Google and Oracle by IPv6, Alibaba Cloud and Azure; those of all others are link-local."""

AddressInfo = tuple[Any, ...]
"""What `getaddrinfo` returns of one address."""


class Connector:
    """Connects to one server. Event-loop thread only."""

    def __init__(
        self, host: str, port: int, *, tls: ssl.SSLContext | None, proxy: Proxy | None, may_be_link_local: bool = False
    ) -> None:
        """Look nothing up yet. `proxy` is tunnelled through where there is `tls`, else it takes the requests itself."""
        self._may_be_link_local = may_be_link_local or proxy is not None  # the environment names the proxy
        self._host = host
        self._port = port
        self._tls = tls
        self._proxy = proxy
        self._peer = (proxy.host, proxy.port) if proxy else (host, port)
        """The host and port that TCP connects to."""
        self._addresses: list[AddressInfo] = []
        self._looked_up_at = float("-inf")
        self._lookup = asyncio.Lock()

    @property
    def has_tls(self) -> bool:
        """Return whether connections are encrypted."""
        return self._tls is not None

    async def connect(self, protocol: asyncio.Protocol) -> None:
        """Connect `protocol`. Raises OSError (TimeoutError, ssl.SSLError, ...); ObjectError where a proxy refuses."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
            addresses = await self._find_addresses(loop)
            connected: socket.socket = await _happy_eyeballs.start_connection(
                addresses, happy_eyeballs_delay=NEXT_ADDRESS_AFTER.total_seconds(), loop=loop
            )
            try:
                _set_options(connected)
                if self._proxy and self._tls:
                    await open_tunnel(connected, self._proxy, self._host, self._port)
                name = self._host if self._tls else None
                await loop.create_connection(lambda: protocol, sock=connected, ssl=self._tls, server_hostname=name)
            except BaseException:
                connected.close()
                raise

    async def _find_addresses(self, loop: asyncio.AbstractEventLoop) -> list[Any]:
        """Return the server's addresses, each time with another one first: large providers have many."""
        async with self._lookup:
            if time.monotonic() - self._looked_up_at > LOOKUP_LIFETIME.total_seconds():
                found = await loop.getaddrinfo(*self._peer, type=socket.SOCK_STREAM)
                if not self._may_be_link_local and any(is_link_local(str(address[0])) for *_, address in found):
                    words = f"{self._peer[0]} leads to a link-local or metadata address, which is no S3 server"
                    raise ServerNotTrusted("AddressNotAllowed", words)
                self._addresses = _alternate(found)
                self._looked_up_at = time.monotonic()
            self._addresses.append(self._addresses.pop(0))
            return self._addresses[:ADDRESSES_AT_ONCE]


def is_link_local(host: str) -> bool:
    """Return whether this is the address of a metadata service of a cloud, or like one; False for a name.

    A number is an address to resolvers: 2852039166 and 0xa9fea9fe are 169.254.169.254.
    """
    try:
        address = ip_address(host.partition("%")[0].removesuffix("."))
    except ValueError:
        try:
            address = ip_address(socket.inet_aton(host))
        except OSError:
            return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_link_local or any(address in network for network in _METADATA)


def explain_failure(error: Exception) -> ObjectError:
    """Return the ObjectError for what an attempt to connect raised."""
    if isinstance(error, ObjectError):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = "AWS_CA_BUNDLE can name the file of your own certificate authority"
        words = f"the certificate of the server is not trusted ({error.verify_message}); {remedy}"
        return ServerNotTrusted("CertificateNotTrusted", words)
    if isinstance(error, TimeoutError):
        return Unreachable("ConnectTimeout", "the server accepted no connection in time")
    if isinstance(error, OSError):
        return Unreachable(type(error).__name__, str(error))
    return ServerFault(type(error).__name__, str(error))


def _set_options(connected: socket.socket) -> None:
    """Send small packets at once and notice a silent peer; macOS lacks some of these options."""
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_SECONDS),
        ("TCP_KEEPINTVL", KEEPALIVE_SECONDS),
        ("TCP_KEEPCNT", KEEPALIVE_TRIES),
        ("TCP_USER_TIMEOUT", int(UNACKNOWLEDGED.total_seconds() * 1000)),
    ):
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _alternate(addresses: Sequence[AddressInfo]) -> list[AddressInfo]:
    """Return the addresses with the two families in turn."""
    first = [address for address in addresses if address[0] == addresses[0][0]]
    second = [address for address in addresses if address[0] != addresses[0][0]]
    return [address for pair in zip_longest(first, second) for address in pair if address is not None]
