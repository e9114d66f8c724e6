"""One worker process without a flag against other ways to copy, in the same run, on each of the servers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.baselines import programs
from bench.environment import read_postgres_version, running_postgres
from bench.record import Figures, Record
from bench.servers import FAKE, REAL, SIGMA, STUB, TLS, BenchServer, Objects, Start, find_servers, trust
from bench.timed import BATCH_SIZE, Launch, fill_queue, run_for
from bench.watch import Watch, between
from bench.whole_runs import CPU, RATE, measure_program, measure_script, measure_worker
from bench.worst import expect_worst, list_medians, list_ratios
from rowferry_lab.servers.postgres import EmbeddedPostgres

LATENCY_MS = 70
BODY_BYTES = 20_000
THREADS = 256
"""Of boto3: 64 to 256 of them are equally fast, since Python's lock is their bound."""
RIVALS = {
    "boto3 in threads": ("entries/s against boto3 in 256 threads", 6),
    "s5cmd": ("entries/s against s5cmd's copies/s", 2),
    "rclone": ("entries/s against rclone's copies/s", 3),
    "rclone unchecked": ("the same, rclone with all checks off", None),
}
OURS = "rowferry"


@dataclass(frozen=True, slots=True)
class Course:
    """One of the servers, and how much is copied there."""

    server: str
    start: Start
    seconds: float
    copies: int
    """Of each program, and of the worker whose start is included."""
    threaded: int
    """Copies of boto3."""
    in_flight: int
    """Of rclone and s5cmd."""
    most_per_second: int
    """More than any contestant reaches."""

    def open(self, objects: int) -> BenchServer:
        """Return a fresh server with so many objects, to be started."""
        return self.start(Objects(objects, BODY_BYTES, LATENCY_MS))

    def migrate(self, postgres: EmbeddedPostgres) -> Figures:
        """Let one worker process migrate, for so long and then once more so many entries from start to end.

        The pace without the start is that of the second half of the time.
        """
        rows = int(self.seconds * self.most_per_second)
        with self.open(rows) as server:
            watch = Watch(server, postgres_pid=postgres.pid, weighs=True)
            fill_queue(watch, rows)
            seen = run_for(self.seconds, watch, [Launch().trusting(server)])
        begin, end = between(seen.samples, self.seconds / 2, self.seconds)
        database = end.postgres_cpu_seconds - begin.postgres_cpu_seconds
        with self.open(self.copies) as server:
            fill_queue(Watch(server), self.copies)
            whole = measure_worker(Launch().trusting(server), self.copies)
        return {
            **seen.figures(self.seconds / 2, self.seconds),
            **whole,
            "memory_mb": max(sample.memory_mb for sample in seen.samples),
            "postgresql_cpu_ms": 1000 * database / max(end.objects - begin.objects, 1),
        }

    def copy_in_threads(self) -> Figures:
        """Let boto3 copy in threads; no row is touched."""
        with self.open(self.threaded) as server:
            command = ["bench.baselines.boto3_threads", f"--url={server.endpoint_url}", f"--objects={self.threaded}"]
            environment = programs.ACCOUNT | trust("AWS_CA_BUNDLE", server)
            return measure_script([*command, f"--threads={THREADS}"], environment, server, self.threaded)

    def copy_by_program(self, command: Callable[..., list[str]], program: Path, *options: str) -> Figures:
        """Let a program copy the prefix; no row is touched."""
        with self.open(self.copies) as server:
            words = command(program, server.endpoint_url, self.in_flight, *options)
            environment = programs.ACCOUNT | trust(programs.TRUST[program.name], server)
            return measure_program(words, environment, server, self.copies, self.in_flight)


def run(record: Record) -> None:
    """Measure all contestants in turn."""
    record.settings |= {"latency_ms": LATENCY_MS, "sigma": SIGMA, "body_bytes": BODY_BYTES, "batch_size": BATCH_SIZE}
    record.settings |= {"boto3_threads": THREADS}
    with running_postgres() as postgres:
        record.versions["postgresql"] = read_postgres_version()
        contestants: dict[str, Callable[[], Figures]] = {}
        for name, start in find_servers(record, FAKE, STUB, REAL, TLS).items():
            contestants |= list_contestants(record, postgres, plan_course(record, name, start))
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=2))
    tell(record)


def plan_course(record: Record, name: str, start: Start) -> Course:
    """Return how much is copied on a server; less on the real one, which has no latency and works for each copy."""
    part = 2 if name == REAL else 1
    course = Course(
        name,
        start,
        seconds=record.pick(30.0, short=4.0, reduced=12.0),
        copies=record.pick(16_000, short=300, reduced=10_000) // part,
        threaded=record.pick(6_000, short=300, reduced=3_000) // part,
        in_flight=64 if name == REAL else 512,
        most_per_second=8_000 if name == REAL else 26_000,
    )
    record.settings[name] = (
        f"{course.seconds:.0f} s, {course.copies:,} copies, {course.threaded:,} of boto3, "
        f"{course.in_flight} in flight of programs"
    )
    return course


def list_contestants(record: Record, postgres: EmbeddedPostgres, course: Course) -> dict[str, Callable[[], Figures]]:
    """Return all ways to copy on a server; those that are not here are noted as absent."""
    rclone, s5cmd = programs.find_rclone(), programs.find_s5cmd()
    found: dict[str, Callable[[], Figures] | None] = {
        OURS: partial(course.migrate, postgres),
        "boto3 in threads": course.copy_in_threads,
        "rclone": rclone and partial(course.copy_by_program, programs.rclone_command, rclone),
        "rclone unchecked": rclone
        and partial(course.copy_by_program, programs.rclone_command, rclone, *programs.RCLONE_UNCHECKED),
        "s5cmd": s5cmd and partial(course.copy_by_program, programs.s5cmd_command, s5cmd),
    }
    record.absent |= {who: programs.MISSING for who, measure in found.items() if measure is None}
    record.versions |= {program.name: programs.read_version(program) for program in (rclone, s5cmd) if program}
    return {f"{who}, {course.server}": measure for who, measure in found.items() if measure is not None}


def tell(record: Record) -> None:
    """Hold the medians against the targets."""
    servers = [name for name in (FAKE, STUB, REAL, TLS) if name not in record.absent]
    medians, ratios = partial(list_medians, record, servers, OURS), partial(list_ratios, record, servers, OURS)
    expect = partial(expect_worst, record)
    expect("entries/s, one worker without a flag", medians(RATE), tells_each=True)
    for rival, (what, at_least) in RIVALS.items():
        expect(what, ratios(rival, RATE), at_least=at_least, unit="x", tells_each=at_least is not None)
    expect("CPU of the worker per entry", medians(CPU), at_most=0.2, unit=" ms")
    expect("the same against boto3 in threads", ratios("boto3 in threads", CPU), unit="x", less_is_better=True)
    expect("memory of the worker", medians("memory_mb"), unit=" MB", less_is_better=True)
    expect("CPU of PostgreSQL per entry", medians("postgresql_cpu_ms"), unit=" ms", less_is_better=True)
    for server in servers:
        cpu, share = (
            record.median(f"{OURS}, {server}", figure) for figure in ("server_cpu_ms_per_entry", "cores_of_worker")
        )
        record.expect(f"CPU of the S3 server per entry: {server}", cpu, unit=" ms")
        record.expect(f"the worker's share of a core: {server}", share)
