"""The S3 servers of the headlines. Each flatters somebody in its own way, so the figure of the worst one counts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

from bench import memory_server
from bench.baselines import NOT_BUILT
from bench.environment import fake_s3
from bench.memory_server import MemoryServer
from bench.record import Record
from bench.stub_server import StubServer, build_stub

SIGMA = 0.3
"""Of the lognormal latency, where a server has one."""


@dataclass(frozen=True, slots=True)
class Objects:
    """What a server has in the bucket `legacy`, all of one size, and the median of its latency."""

    count: int
    body_bytes: int
    latency_ms: float


class BenchServer(Protocol):
    """A server that is started by `with`, and counts what it does."""

    endpoint_url: str

    def __enter__(self) -> Self:
        """Start it."""
        ...

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        ...

    def read_stats(self) -> dict[str, Any]:
        """Return the counts since its start, `objects` among them: those of the bucket `production`."""
        ...


Start = Callable[[Objects], BenchServer]


def make_fake(objects: Objects) -> BenchServer:
    """Return the lab's fake, which answers many requests at one moment."""
    options = (f"--latency-sigma={SIGMA}", f"--objects={objects.count}")
    return fake_s3(objects.latency_ms, *options, body_bytes=objects.body_bytes)


def make_stub(objects: Objects, *, tls: bool = False) -> BenchServer:
    """Return the stub, which answers one request after the other."""
    options = (f"-latency={objects.latency_ms}", f"-sigma={SIGMA}")
    return StubServer(*options, f"-size={objects.body_bytes}", f"-keys={objects.count}", tls=tls)


def make_real(objects: Objects) -> BenchServer:
    """Return the real server, which works for each response on the cores of its clients, and has no latency."""
    return MemoryServer(objects.body_bytes, objects.count)


NO_LATENCY = (0,)
FAKE, STUB, REAL, TLS = "fake", "stub", "versitygw", "stub, TLS"
SERVERS: dict[str, Start] = {
    FAKE: make_fake,
    STUB: make_stub,
    REAL: make_real,
    TLS: lambda objects: make_stub(objects, tls=True),
}


def find_servers(record: Record, *names: str) -> dict[str, Start]:
    """Return those of the named servers that can be here; the others are noted as absent."""
    obstacles = find_obstacles()
    record.absent |= {name: why for name, why in obstacles.items() if name in names and why is not None}
    return {name: SERVERS[name] for name in names if obstacles[name] is None}


def find_obstacles() -> dict[str, str | None]:
    """Return why each server cannot be here; None where it can."""
    stub = None if build_stub() else NOT_BUILT
    return {FAKE: None, STUB: stub, REAL: memory_server.find_obstacle(), TLS: stub}


def trust(variable: str, *servers: BenchServer) -> dict[str, str]:
    """Return the variable by which a client trusts the certificates of servers; nothing where they have none."""
    certificates = [path for server in servers if (path := getattr(server, "certificate", None))]
    if not certificates:
        return {}
    bundle = certificates[0].with_name("trusted.crt")
    bundle.write_bytes(b"".join(path.read_bytes() for path in certificates))
    return {variable: str(bundle)}
