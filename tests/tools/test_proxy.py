"""The proxy of the tests leaves no connection behind when it goes away: the garbage collector would find it later."""

import asyncio
import gc
import socket
from contextlib import ExitStack

import pytest

from support.s3.proxy import Proxy, Streams


class Holding(Proxy):
    """Answers nothing."""

    async def relay_one(self, client: Streams, server: Streams) -> bool:
        await asyncio.Event().wait()
        return False


async def close_after(proxy: Proxy, steps: int, until: ExitStack) -> None:
    """Go away so many steps of the loop after clients have come, which it can accept from the first step on."""
    address = proxy._server.sockets[0].getsockname()
    for _ in range(4):
        until.enter_context(socket.create_connection(address))
    for _ in range(steps):
        await asyncio.sleep(0)
    await proxy._close()
    await proxy._listen()


@pytest.mark.parametrize("steps", range(6))
def test_a_proxy_that_goes_away_as_clients_come_leaves_no_connection(steps: int) -> None:
    gc.collect()  # what other tests have left
    with ExitStack() as until, socket.create_server(("127.0.0.1", 0)) as upstream:
        port = upstream.getsockname()[1]
        with Holding(f"http://127.0.0.1:{port}").running() as proxy:
            proxy._call(close_after(proxy, steps, until))
    gc.collect()  # it warns of what is unclosed, which fails the test
