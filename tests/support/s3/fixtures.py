"""Fixtures that every test may ask for: S3 servers and buckets."""

from collections.abc import Iterator

import pytest

from rowferry_lab.servers.s3_servers import MotoServer, S3Server
from support.s3.buckets import (
    QUICK_SERVER,
    Buckets,
    VersityInMemory,
    find_versitygw,
    fresh_buckets,
    reached_by_all,
    running_for_all,
)
from support.s3.deviations import Deviations
from support.s3.fake_s3 import running_fakes
from support.s3.request_clock import RequestClock, stop_request_clock
from support.s3.request_log import RequestLog, logged


@pytest.fixture(scope="session")
def moto() -> Iterator[S3Server]:
    with running_for_all(MotoServer()) as server:
        yield server


@pytest.fixture(scope="session")
def versitygw() -> Iterator[S3Server]:
    program = find_versitygw()
    if program is None:
        pytest.skip("versitygw is not here: `make servers` builds it where `go` is installed")
    with running_for_all(VersityInMemory(program)) as server:
        yield server


@pytest.fixture(scope="session")
def fake() -> Iterator[S3Server]:
    """The lab's fake in this process, which behaves like Amazon's."""
    with running_fakes(Deviations()) as (server,), reached_by_all(server):
        yield server


@pytest.fixture(params=["moto", "versitygw"])
def s3_server(request: pytest.FixtureRequest) -> S3Server:
    """Each S3 server of this machine, one after the other."""
    server: S3Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def buckets(s3_server: S3Server) -> Iterator[Buckets]:
    """A fresh legacy and a fresh production bucket, in each S3 server."""
    with fresh_buckets(s3_server) as found:
        yield found


@pytest.fixture
def moto_buckets(moto: S3Server) -> Iterator[Buckets]:
    """The same in moto only, which takes every key as it is."""
    with fresh_buckets(moto) as found:
        yield found


@pytest.fixture
def fake_buckets(fake: S3Server) -> Iterator[Buckets]:
    """The same in the lab's fake, which costs a tenth: for tests that only need a bucket to look into."""
    with fresh_buckets(fake) as found:
        yield found


@pytest.fixture
def versitygw_buckets(versitygw: S3Server) -> Iterator[Buckets]:
    """The same in versitygw only, which checks credentials and digests."""
    with fresh_buckets(versitygw) as found:
        yield found


@pytest.fixture
def quick_buckets(request: pytest.FixtureRequest) -> Buckets:
    """The same in versitygw, which is quick, or in moto where there is no versitygw."""
    found: Buckets = request.getfixturevalue(f"{QUICK_SERVER}_buckets")
    return found


@pytest.fixture
def log(request: pytest.FixtureRequest) -> Iterator[RequestLog]:
    """A logging proxy in front of versitygw, which is the faster server, or of moto where there is no versitygw."""
    with logged(request.getfixturevalue(QUICK_SERVER).endpoint_url) as log:
        yield log


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> RequestClock:
    """The clock of requests, which stands still until a test moves it."""
    return stop_request_clock(monkeypatch)
