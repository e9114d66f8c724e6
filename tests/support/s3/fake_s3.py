"""The fake S3 server in a thread of this process, with one store behind several addresses."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from rowferry_lab.servers.fake_s3 import FakeS3
from rowferry_lab.servers.fake_s3_settings import Deviations
from rowferry_lab.servers.fake_s3_store import Store
from rowferry_lab.servers.s3_servers import FakeS3Server


class FakeAddress(FakeS3Server):
    """One address of the fake, which behaves there as told."""

    def __init__(self, fake: FakeS3, port: int) -> None:
        super().__init__()
        self.fake = fake
        self.endpoint_url = f"http://127.0.0.1:{port}"


@contextmanager
def running_fakes(*behaviours: Deviations, store: Store | None = None) -> Iterator[list[FakeAddress]]:
    """Yield one address for each of the behaviours; all show the same buckets, those of `store` where it is given."""
    store, loop = store or Store(), asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="fake S3")
    thread.start()
    servers: list[asyncio.Server] = []
    try:
        addresses: list[FakeAddress] = []
        for deviations in behaviours:
            fake = FakeS3(store, deviations)
            server = asyncio.run_coroutine_threadsafe(fake.listen(0), loop).result(10)
            servers.append(server)
            addresses.append(FakeAddress(fake, server.sockets[0].getsockname()[1]))
        yield addresses
    finally:
        for server in servers:
            loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(close_connections(loop))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def close_connections(loop: asyncio.AbstractEventLoop) -> None:
    """Close what clients have left open: else it is found, and warned of, during another test."""
    for transport in list(getattr(loop, "_transports", {}).values()):
        transport.abort()
    await asyncio.sleep(0)
