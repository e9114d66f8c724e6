"""Objects streamed between two servers: pace, CPU and memory of `rowferry worker` without a flag, and of others."""

from dataclasses import dataclass, replace
from functools import partial

from bench.environment import read_postgres_version, running_postgres
from bench.migration import BATCH_SIZE
from bench.record import Record
from bench.servers import FAKE, REAL, SERVERS, SIGMA, Objects, find_servers
from bench.transfers import THREADED, Course, list_contestants


@dataclass(frozen=True, slots=True)
class Size:
    """Objects of one size: some seconds of work."""

    objects: Objects
    in_flight: int
    """Of rclone, with which it is fastest here."""
    rivals: tuple[str, ...]


SIZES = {
    "20 kB": Size(Objects(12_000, 20_000, 70), 256, (THREADED, "rclone", "rclone unchecked")),
    "1 MB": Size(Objects(8_000, 1_000_000, 10), 64, ("rclone", "rclone unchecked")),
    "100 MB": Size(Objects(120, 100_000_000, 10), 8, ("rclone", "rclone unchecked")),
    "1 GB": Size(Objects(24, 1_000_000_000, 10), 8, ("rclone",)),
}
BY_PARTS = {"1 GB"}
"""What rclone sends by parts, which it takes for damaged unless it looks afterwards. The real server has no room."""
SHORT = {name: SIZES[name] for name in ("20 kB", "1 MB")}
THREADS = 128
MOST_IN_FLIGHT = 64
"""On the real server."""


def run(record: Record) -> None:
    """Measure each size on each server."""
    record.settings |= {"sigma": SIGMA, "batch_size": BATCH_SIZE}
    with running_postgres() as postgres:
        record.versions["postgresql"] = read_postgres_version()
        servers = find_servers(record, *record.pick(tuple(SERVERS), short=(FAKE, REAL)))
        for name, size in record.pick(SIZES, short=SHORT).items():
            for server, start in servers.items():
                if server == REAL and name in BY_PARTS:
                    continue
                in_flight = min(size.in_flight, MOST_IN_FLIGHT) if server == REAL else size.in_flight
                course = Course(server, start, choose_objects(record, size, server), in_flight, THREADS, is_stream=True)
                contestants = list_contestants(record, course, size.rivals, partial(course.migrate, postgres.pid))
                named = {f"{who}, {name}, {server}": measure for who, measure in contestants.items()}
                record.interleave(named, repetitions=record.pick(3, short=1, reduced=1 if name in BY_PARTS else 2))


def choose_objects(record: Record, size: Size, server: str) -> Objects:
    """Return what is streamed between servers of one kind; less between real ones, which work for it."""
    count = record.pick(size.objects.count, short=100, reduced=size.objects.count // 3)
    return replace(size.objects, count=count // (2 if server == REAL else 1))
