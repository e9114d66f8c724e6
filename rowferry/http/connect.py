"""Opens connections to one endpoint: its name looked up, TCP, and TLS that trusts nobody without a certificate."""

import asyncio
import socket
import time
from collections.abc import Sequence
from datetime import timedelta
from itertools import zip_longest
from typing import Any

import aiohappyeyeballs

from rowferry.http.proxy import open_tunnel
from rowferry.http.trust import trust
from rowferry.s3.endpoint import Endpoint

CONNECT_WITHIN = timedelta(seconds=10)
"""How long it may take until a server has accepted a connection and shown its certificate."""
NEXT_ADDRESS_AFTER = timedelta(milliseconds=250)
"""So long an address is waited for before the next one is tried beside it. Source: RFC 8305, section 5."""
ADDRESSES_LAST = timedelta(seconds=10)
"""How long a looked-up name is good for: hundreds of connections are opened at once."""

ADDRESSES_AT_ONCE = 4
"""So many of a server's addresses are tried for one connection: of both families, where it has both. Three of them
that swallow everything cost three times NEXT_ADDRESS_AFTER."""
KEEPALIVE_SECONDS, KEEPALIVE_TRIES = 15, 4
"""How often a connection without traffic is asked whether it is still there, and how often in vain until it is not."""
UNACKNOWLEDGED = timedelta(seconds=60)
"""So long what was sent may go without a sign that it has arrived."""

_happy_eyeballs: Any = aiohappyeyeballs

AddressInfo = tuple[Any, ...]
"""What `getaddrinfo` returns of one address."""


class Dial:
    """The way to one server. To be used on the event-loop thread only."""

    def __init__(self, endpoint: Endpoint, host: str) -> None:
        """`host`: the name or address of the server, which for a virtual host begins with the bucket."""
        self._host = host
        self._port = endpoint.port
        self._proxy = endpoint.proxy
        self._peer = (endpoint.proxy.host, endpoint.proxy.port) if endpoint.proxy else (host, endpoint.port)
        """Whose addresses are connected to."""
        self._tls = trust(endpoint.ca_bundle) if endpoint.scheme == "https" else None
        self._addresses: list[AddressInfo] = []
        self._looked_up_at = float("-inf")
        self._lookup = asyncio.Lock()

    async def open(self, protocol: asyncio.Protocol) -> None:
        """Connect `protocol`. Raises OSError (TimeoutError and ssl.SSLError among them) when that fails,
        and ObjectError when a proxy refuses.
        """
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_WITHIN.total_seconds()):
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
        """Return the server's addresses, each time with another one first: a provider's name has many."""
        async with self._lookup:
            if time.monotonic() - self._looked_up_at > ADDRESSES_LAST.total_seconds():
                found = await loop.getaddrinfo(*self._peer, type=socket.SOCK_STREAM)
                self._addresses = _alternate(found)
                self._looked_up_at = time.monotonic()
            self._addresses.append(self._addresses.pop(0))
            return self._addresses[:ADDRESSES_AT_ONCE]


def _set_options(connected: socket.socket) -> None:
    """Send at once, and notice a peer that has gone without a word; macOS lacks some of these by name."""
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
    """Return addresses with the two families in turn, as long as there are both."""
    first = [address for address in addresses if address[0] == addresses[0][0]]
    second = [address for address in addresses if address[0] != addresses[0][0]]
    return [address for pair in zip_longest(first, second) for address in pair if address is not None]
