"""Clients of the hot path for tests: of real servers, and of the stand-in that misbehaves."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from botocore.credentials import Credentials

from rowferry.errors import ObjectError
from rowferry.http import event_loop
from rowferry.plan import LegacySide, ProductionSide, Side, SideName
from rowferry.s3 import operations
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response, find_error
from support.s3.buckets import Buckets
from support.s3.fake_s3 import endpoint_at
from support.s3.stand_in import Behaviour, StandIn

WAIT_SECONDS = 100
HEAD = operations.head_object("production", "k")
COPY = operations.copy_object("k", source_bucket="old", source_key="k", if_none_match=True)
GET = operations.get_object("production", "k")
LIST = operations.list_first_object("production")


class Result(Response, frozen=True):
    """What came of a request: a response, or an error."""

    error: ObjectError | None = None


def read(status: int, headers: Mapping[str, str], body: bytes, *, may_hide_error: bool = False) -> Result:
    """Return what a response of a server comes to."""
    response = Response(status, headers, body)
    return Result(status, headers, body, error=find_error(response, may_hide_error=may_hide_error))


def ask(client: ObjectClient, request: Request) -> Result:
    """Send a request once and return its result."""
    return begin(client, request).result(WAIT_SECONDS)


def begin(client: ObjectClient, request: Request) -> Future[Result]:
    """Send a request, and return the future of its result at once."""

    async def call() -> Result:
        try:
            response = await client.send(request)
            return Result(response.status, response.headers, response.body)
        except ObjectError as error:
            return Result(error.status, error.headers, error=error)

    return event_loop.submit(call())


@contextmanager
def opened(side: Side, credentials: Any = None, **settings: Any) -> Iterator[ObjectClient]:
    """A client of `side` that retries without long waits."""
    chosen = {
        "endpoint": settings.get("endpoint") or resolve_endpoint(side),
        "max_in_flight": 8,
        "deadline": timedelta(seconds=90),
        **settings,
    }
    client = ObjectClient(side, credentials or Credentials("AK", "SK"), **chosen)
    try:
        yield client
    finally:
        client.close()


@contextmanager
def facing(*behaviours: Behaviour, **settings: Any) -> Iterator[tuple[ObjectClient, StandIn]]:
    """A client of a server that answers as told."""
    with StandIn(*behaviours) as server:
        settings.setdefault("endpoint", endpoint_at(server.endpoint_url))
        with opened(side_of(server), **settings) as client:
            yield client, server


def side_of(server: StandIn, name: SideName = "production") -> Side:
    return (LegacySide if name == "legacy" else ProductionSide)("bucket", endpoint_url=server.endpoint_url)


@contextmanager
def clients_of(buckets: Buckets, **settings: Any) -> Iterator[tuple[ObjectClient, ObjectClient]]:
    """The clients of both buckets of a real server."""
    url, secret = buckets.server.endpoint_url, buckets.server.secret_key
    credentials = Credentials(buckets.server.access_key, secret)
    with (
        opened(LegacySide(buckets.legacy, endpoint_url=url), credentials, **settings) as legacy,
        opened(ProductionSide(buckets.production, endpoint_url=url), credentials, **settings) as production,
    ):
        yield legacy, production
