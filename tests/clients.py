"""Clients of the hot path for tests: of real servers, and of the stand-in that misbehaves."""

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from botocore.credentials import Credentials

from rowferry.plan import LegacySide, ProductionSide, Side, SideName
from rowferry.s3 import operations
from rowferry.s3.client import ObjectClient
from rowferry.s3.endpoint import resolve_endpoint
from rowferry.s3.operations import Request
from rowferry.s3.responses import Answer
from servers import Buckets
from stand_in import Behaviour, StandIn

WAIT_SECONDS = 100
HEAD = operations.head_object("production", "k")
COPY = operations.copy_object("k", source_bucket="old", source_key="k", if_none_match=True)
GET = operations.get_object("production", "k")


def ask(client: ObjectClient, request: Request) -> Answer:
    """Send a request and return its answer."""
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    client.send(request, answers.put)
    return answers.get(timeout=WAIT_SECONDS)


@contextmanager
def opened(side: Side, credentials: Any = None, **settings: Any) -> Iterator[ObjectClient]:
    """A client of `side` that retries without long waits."""
    chosen = {
        "endpoint": resolve_endpoint(side),
        "max_in_flight": 8,
        "deadline": timedelta(seconds=90),
        "backoff": timedelta(milliseconds=2),
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
    with StandIn(*behaviours) as server, opened(side_of(server), **settings) as client:
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
