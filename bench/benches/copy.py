"""`rowferry worker` against other ways to copy within a server, in the same run, on each server and at each latency."""

from bench.environment import read_postgres_version, running_postgres
from bench.migration import BATCH_SIZE
from bench.record import Record
from bench.servers import FAKE, NO_LATENCY, REAL, SERVERS, SIGMA, Objects, Start, find_servers
from bench.transfers import THREADED, Course, list_contestants

LATENCIES_MS = (0, 10, 70)
BODY_BYTES = 20_000
THREADS = 256
IN_FLIGHT, IN_FLIGHT_AT_ONCE = 512, 64
"""Of rclone and s5cmd, with which they are fastest: of servers with a latency, and of those without."""
RIVALS = (THREADED, "rclone", "rclone unchecked", "s5cmd")


def run(record: Record) -> None:
    """Measure all contestants in turn."""
    record.settings |= {"sigma": SIGMA, "body_bytes": BODY_BYTES, "batch_size": BATCH_SIZE}
    with running_postgres() as postgres:
        record.versions["postgresql"] = read_postgres_version()
        for server, start in find_servers(record, *record.pick(tuple(SERVERS), short=(FAKE, REAL))).items():
            for latency_ms in NO_LATENCY if server == REAL else record.pick(LATENCIES_MS, short=(70,)):
                course = plan_course(record, server, start, latency_ms)
                contestants = list_contestants(record, course, RIVALS, postgres.pid)
                named = {f"{who}, {server}, {latency_ms} ms": measure for who, measure in contestants.items()}
                record.settings[f"{server}, {latency_ms} ms"] = (
                    f"{course.objects.count:,} objects, {course.in_flight} in flight of programs"
                )
                record.interleave(named, repetitions=record.pick(3, short=1, reduced=2))


def plan_course(record: Record, server: str, start: Start, latency_ms: int) -> Course:
    """Return what is copied on a server; less on the real one, which works for each copy."""
    count = record.pick(30_000, short=500, reduced=15_000) // (4 if server == REAL else 1)
    in_flight = IN_FLIGHT if latency_ms else IN_FLIGHT_AT_ONCE
    return Course(server, start, Objects(count, BODY_BYTES, latency_ms), in_flight, THREADS)
