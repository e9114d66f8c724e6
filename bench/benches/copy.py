"""One worker process against other ways to copy within a server, in the same run, on each of the servers."""

from functools import partial

from bench.environment import read_postgres_version, running_postgres
from bench.migration import BATCH_SIZE
from bench.record import Record
from bench.servers import FAKE, REAL, SERVERS, SIGMA, Objects, Start, find_servers
from bench.transfers import THREADED, Course, list_contestants

LATENCY_MS = 70
BODY_BYTES = 20_000
THREADS = 256
RIVALS = (THREADED, "rclone", "rclone unchecked", "s5cmd")


def run(record: Record) -> None:
    """Measure all contestants in turn."""
    record.settings |= {"latency_ms": LATENCY_MS, "sigma": SIGMA, "body_bytes": BODY_BYTES, "batch_size": BATCH_SIZE}
    with running_postgres() as postgres:
        record.versions["postgresql"] = read_postgres_version()
        for server, start in find_servers(record, *record.pick(tuple(SERVERS), short=(FAKE, REAL))).items():
            course = plan_course(record, server, start)
            record.settings[server] = f"{course.objects.count:,} objects, {course.in_flight} in flight of programs"
            migrate = partial(course.migrate, postgres.pid, "--processes=1")
            contestants = list_contestants(record, course, RIVALS, migrate)
            named = {f"{who}, {server}": measure for who, measure in contestants.items()}
            record.interleave(named, repetitions=record.pick(3, short=1, reduced=2))


def plan_course(record: Record, server: str, start: Start) -> Course:
    """Return what is copied on a server; less on the real one, which has no latency and works for each copy."""
    is_real = server == REAL
    count = record.pick(30_000, short=500, reduced=10_000) // (2 if is_real else 1)
    return Course(server, start, Objects(count, BODY_BYTES, LATENCY_MS), 64 if is_real else 512, THREADS)
