"""Objects streamed between two servers: pace, CPU and memory of `rowferry worker` without a flag, and of others."""

from dataclasses import dataclass, replace

from bench.environment import read_postgres_version, running_postgres
from bench.record import Record
from bench.servers import FAKE, NO_LATENCY, REAL, SERVERS, SIGMA, Objects, find_servers
from bench.transfers import THREADED, Course, list_contestants


@dataclass(frozen=True, slots=True)
class Size:
    """Objects of one size: some seconds of work."""

    count: int
    body_bytes: int
    latencies_ms: tuple[int, ...]
    in_flight: int
    """Of rclone, with which it is fastest here."""
    batch_size: int
    rivals: tuple[str, ...]


SIZES = {
    "20 kB": Size(12_000, 20_000, (0, 10, 70), 256, 500, (THREADED, "rclone", "rclone unchecked")),
    "1 MB": Size(8_000, 1_000_000, (0, 10, 70), 64, 100, ("rclone", "rclone unchecked")),
    "100 MB": Size(120, 100_000_000, (10,), 8, 5, ("rclone", "rclone unchecked")),
    "1 GB": Size(24, 1_000_000_000, (10,), 8, 1, ("rclone",)),
}
BY_PARTS = {"1 GB"}
"""What rclone sends by parts, which it takes for damaged unless it looks afterwards. The real server has no room."""
SHORT = {name: replace(SIZES[name], latencies_ms=(10,)) for name in ("20 kB", "1 MB")}
THREADS = 128
MOST_IN_FLIGHT = 64
"""On the real server."""


def run(record: Record) -> None:
    """Measure each size on each server."""
    record.settings |= {"sigma": SIGMA, "batch_size": {name: size.batch_size for name, size in SIZES.items()}}
    with running_postgres() as postgres:
        record.versions["postgresql"] = read_postgres_version()
        servers = find_servers(record, *record.pick(tuple(SERVERS), short=(FAKE, REAL)))
        for name, size in record.pick(SIZES, short=SHORT).items():
            for server in servers:
                if server == REAL and name in BY_PARTS:
                    continue
                for latency_ms in NO_LATENCY if server == REAL else size.latencies_ms:
                    course = plan_course(record, size, server, latency_ms)
                    contestants = list_contestants(record, course, size.rivals, postgres.pid)
                    named = {f"{who}, {name}, {server}, {latency_ms} ms": run for who, run in contestants.items()}
                    record.interleave(named, repetitions=record.pick(3, short=1, reduced=1 if name in BY_PARTS else 2))


def plan_course(record: Record, size: Size, server: str, latency_ms: int) -> Course:
    """Return what is streamed between servers of one kind; less between real ones, which work for it."""
    count = record.pick(size.count, short=100, reduced=size.count // 3) // (2 if server == REAL else 1)
    objects = Objects(count, size.body_bytes, latency_ms)
    in_flight = min(size.in_flight, MOST_IN_FLIGHT) if server == REAL else size.in_flight
    return Course(server, SERVERS[server], objects, in_flight, THREADS, is_stream=True, batch_size=size.batch_size)
