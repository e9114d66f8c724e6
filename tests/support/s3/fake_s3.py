"""The fake S3 server in a thread of this process, with one store behind several addresses."""

import asyncio
import atexit
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Thread
from urllib.parse import urlsplit

import uvloop

from rowferry.s3.access.endpoint import Endpoint
from rowferry_lab.servers.fake_s3.server import FakeS3
from rowferry_lab.servers.fake_s3.settings import Deviations
from rowferry_lab.servers.fake_s3.store import Store
from rowferry_lab.servers.s3_servers import FakeS3Server


class FakeAddress(FakeS3Server):
    """One address of the fake, which behaves there as told."""

    def __init__(self, fake: FakeS3, endpoint_url: str) -> None:
        super().__init__()
        self.fake, self.endpoint_url = fake, endpoint_url


@contextmanager
def running_fakes(*behaviours: Deviations, store: Store | None = None) -> Iterator[list[FakeAddress]]:
    """Yield one address for each of the behaviours; all show the same buckets, those of `store` where it is given."""
    store = store or Store()
    with ExitStack() as until:
        fakes = [FakeS3(store, deviations) for deviations in behaviours]
        yield [FakeAddress(fake, until.enter_context(serve_on_thread(fake))) for fake in fakes]


def endpoint_at(url: str) -> Endpoint:
    """Return what `resolve_endpoint` finds for the URL of a server here, without botocore, which takes 15 ms for it."""
    parts = urlsplit(url)
    return Endpoint("http", parts.hostname or "", parts.port or 80, base_path="", virtual_host=False)


@cache
def server_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop that serves whatever `serve_on_thread` is told to, one after the other."""
    loop = uvloop.new_event_loop()
    thread = Thread(target=loop.run_forever, name="fake S3", daemon=True)
    thread.start()
    atexit.register(loop.call_soon_threadsafe, loop.stop)
    return loop


@contextmanager
def serve_on_thread(fake: FakeS3, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Have a fake serve until the block ends, and yield its address."""
    loop = server_loop()
    server = asyncio.run_coroutine_threadsafe(fake.listen(0, tls), loop).result(100)

    async def stop() -> None:
        server.close()
        for connection in list(fake.connections):
            connection.abort()
        await asyncio.sleep(0)

    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(100)
