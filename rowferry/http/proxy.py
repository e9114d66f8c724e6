"""HTTP proxies that the environment names, by botocore's rule: CONNECT for https, plain requests for http."""

import asyncio
import base64
import socket
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from rowferry.errors import ServerFault, SideFault, Unreachable, UsageError

MAX_RESPONSE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that is reached without TLS."""

    host: str
    port: int
    header: str = field(default="", repr=False)
    """The Proxy-Authorization header with its line break; empty where the proxy wants none."""


def find_proxy(scheme: str, authority: str) -> Proxy | None:
    """Return the proxy by which `authority` (host, and port where it is not the scheme's) is reached; None for none.

    HTTP_PROXY, HTTPS_PROXY and NO_PROXY are read, in capitals or not. Raises UsageError, which repeats no password,
    for a proxy that cannot be used.
    """
    url = getproxies().get(scheme)
    if not url or proxy_bypass(authority):
        return None
    mistake = f"{scheme.upper()}_PROXY must look like http://host:port"
    remedy = f"set NO_PROXY to {authority} where no proxy is needed"
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or 80
    except ValueError as error:
        raise UsageError(f"{mistake}; {remedy}.") from error
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"{mistake}, not {parts.scheme}://: no other proxy is supported; {remedy}.")
    header = ""
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        header = f"Proxy-Authorization: Basic {base64.b64encode(login.encode()).decode()}\r\n"
    return Proxy(parts.hostname, port, header)


async def open_tunnel(connected: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    """Have the proxy connect the socket to a server.

    Raises SideFault when the proxy refuses that for good, Unreachable or ServerFault when it cannot do so now.
    """
    loop = asyncio.get_running_loop()
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    request = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{proxy.header}\r\n"
    await loop.sock_sendall(connected, request.encode())
    response = b""
    while b"\r\n\r\n" not in response:
        came = await loop.sock_recv(connected, 4096)
        response += came
        if not came or len(response) > MAX_RESPONSE_BYTES:
            raise ServerFault("UnreadableResponse", f"the proxy {proxy.host}:{proxy.port} did not answer CONNECT")
    status = response.split(b"\r\n", 1)[0].split(b" ")[1:2]
    code = int(status[0]) if status and status[0].isdigit() and len(status[0]) == 3 else 0
    words = f"the proxy {proxy.host}:{proxy.port} answers {code or 'nonsense'} to CONNECT {authority}"
    if 400 <= code < 500:
        raise SideFault("ProxyRefused", f"{words}; correct HTTPS_PROXY, or set NO_PROXY to {host}")
    if not 200 <= code < 300:
        raise Unreachable("ProxyRefused", words)


def describe_target(proxy: Proxy | None, scheme: str, authority: str) -> tuple[str, str]:
    """Return the start of the request line's target, and a header, for requests that a proxy forwards."""
    if proxy is None or scheme == "https":
        return "", ""
    return f"http://{authority}", proxy.header
