"""Objects streamed between two endpoints: pace, CPU and memory of `rowferry worker` without a flag, and of others."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.baselines import programs
from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.record import Figures, Record
from bench.servers import FAKE, REAL, SIGMA, STUB, TLS, BenchServer, Objects, Start, find_servers, trust
from bench.timed import BATCH_SIZE, Launch, fill_queue, run_for
from bench.watch import Watch
from bench.whole_runs import CPU, RATE, measure_program, measure_script, measure_worker
from bench.worst import STARTS, expect_worst, list_medians, list_ratios


@dataclass(frozen=True, slots=True)
class Size:
    """Objects of one size."""

    body_bytes: int
    latency_ms: int
    in_flight: int
    """Of rclone, with which it is fastest here."""
    objects: int
    """That are streamed in a whole run: some seconds of work."""
    rows_per_second: int
    """More than any contestant reaches."""


SIZES = {
    "20 kB": Size(20_000, 70, 256, 12_000, 12_000),
    "1 MB": Size(1_000_000, 10, 64, 8_000, 3_000),
    "100 MB": Size(100_000_000, 10, 8, 120, 60),
    "1 GB": Size(1_000_000_000, 10, 8, 24, 3),
}
BY_PARTS = {"1 GB"}
"""What rclone sends by parts, which it takes for damaged unless it looks afterwards. The real server has no room."""
LEAST_SECONDS = {"1 GB": 24.0}
"""The first of them is alone, since it is hashed: it shows whether the server checks digests."""
THREADS = 128
"""Of boto3: 64 to 256 of them are equally fast, since Python's lock is their bound."""
WEIGHED = {"20 kB": "20000", "30 MB": "30000000", "100 MB": "100000000", "mixed": "20000,30000000,100000000"}
"""The sizes of objects whose memory is looked at."""
WEIGHED_LATENCY_MS = 10
MOST_SECONDS_IN_MEMORY = 9.0
"""The real server keeps what is written, half a gigabyte a second."""
OURS, THREADED = "rowferry", "boto3 in threads"


@dataclass(frozen=True, slots=True)
class Course:
    """Two servers of one kind, and how much is streamed between them."""

    server: str
    start: Start
    size: Size
    seconds: float
    objects: int
    threaded: int
    """Objects of boto3."""

    def open(self, objects: int) -> tuple[BenchServer, BenchServer]:
        """Return a fresh legacy server with so many objects, and a production server, to be started."""
        size = self.size
        both = (Objects(count, size.body_bytes, size.latency_ms) for count in (objects, 1))
        legacy, production = map(self.start, both)
        return legacy, production

    def migrate(self) -> Figures:
        """Let `rowferry worker` stream, for so long and then once more so many entries from start to end.

        The pace without the start is that of the second half of the time.
        """
        rows = int(self.seconds * self.size.rows_per_second)
        legacy, production = self.open(rows)
        with legacy, production:
            watch = Watch(production, legacy, weighs=True)
            fill_queue(watch, rows)
            seen = run_for(self.seconds, watch, [Launch(()).trusting(legacy, production)])
        legacy, production = self.open(self.objects)
        with legacy, production:
            fill_queue(Watch(production, legacy), self.objects)
            whole = measure_worker(Launch(()).trusting(legacy, production), self.objects)
        figures = seen.figures(self.seconds / 2, self.seconds)
        pace = max(figures["megabytes_per_second"], 1e-3)
        return {
            **self._weigh_megabytes(whole),
            **figures,
            "cpu_ms_per_mb": 1000 * figures["cores_of_worker"] / pace,
            "memory_mb": max(sample.memory_mb for sample in seen.samples),
            "largest_mb": max(sample.largest_mb for sample in seen.samples),
        }

    def stream_by_rclone(self, rclone: Path, *options: str) -> Figures:
        """Let rclone copy a prefix from one server to the other; no row is touched."""
        legacy, production = self.open(self.objects)
        with legacy, production:
            environment = programs.rclone_remotes(legacy.endpoint_url, production.endpoint_url)
            environment |= trust(programs.TRUST[rclone.name], legacy, production)
            in_flight = min(self.size.in_flight, 64) if self.server == REAL else self.size.in_flight
            command = programs.rclone_between_command(rclone, in_flight, *options)
            figures = measure_program(command, environment, production, self.objects, in_flight)
            return self._weigh_megabytes(figures)

    def stream_in_threads(self) -> Figures:
        """Let boto3 get and put in threads; no row is touched."""
        legacy, production = self.open(self.threaded)
        with legacy, production:
            command = ["bench.baselines.boto3_threads", f"--url={legacy.endpoint_url}", f"--threads={THREADS}"]
            command += [f"--to={production.endpoint_url}", f"--objects={self.threaded}"]
            environment = programs.ACCOUNT | trust("AWS_CA_BUNDLE", legacy, production)
            return self._weigh_megabytes(measure_script(command, environment, production, self.threaded))

    def _weigh_megabytes(self, figures: Figures) -> Figures:
        """Return the same figures by megabyte as well."""
        megabytes = self.size.body_bytes / 1e6
        found = dict(figures)
        for ending in STARTS.values():
            if RATE + ending in figures:
                found["megabytes_per_second" + ending] = figures[RATE + ending] * megabytes
                found["cpu_ms_per_mb" + ending] = figures[CPU + ending] / megabytes
        return found


def run(record: Record) -> None:
    """Measure the throughput of each size on each server, then the memory."""
    seconds, weighed = record.pick(30.0, short=4.0, reduced=9.0), record.pick(20.0, short=4.0, reduced=8.0)
    record.settings |= {"seconds": seconds, "seconds_for_memory": weighed, "batch_size": BATCH_SIZE, "sigma": SIGMA}
    record.settings[f"seconds, {REAL}"] = min(seconds, MOST_SECONDS_IN_MEMORY)
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        servers = find_servers(record, FAKE, STUB, REAL, TLS)
        for name, size in record.pick(SIZES, short={name: SIZES[name] for name in ("20 kB", "1 MB")}).items():
            record.settings[name] = f"{size.latency_ms} ms of latency, rclone with {size.in_flight} transfers"
            contestants: dict[str, Callable[[], Figures]] = {}
            for server, start in list_servers(name, servers).items():
                course = plan_course(record, server, start, size, max(seconds, LEAST_SECONDS.get(name, 0.0)))
                contestants |= list_contestants(record, name, course)
            record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=1 if name in BY_PARTS else 2))
        sizes = {f"memory, {name}": partial(weigh, sizes, weighed) for name, sizes in WEIGHED.items()}
        record.interleave(sizes, repetitions=1)
    tell(record, servers)


def list_servers(name: str, servers: dict[str, Start]) -> dict[str, Start]:
    """Return the servers between which objects of a size are streamed."""
    return {server: start for server, start in servers.items() if name not in BY_PARTS or server != REAL}


def plan_course(record: Record, server: str, start: Start, size: Size, seconds: float) -> Course:
    """Return how much is streamed between servers of one kind; less between real ones, which work for it."""
    is_real = server == REAL
    objects = record.pick(size.objects, short=100, reduced=size.objects // 3) // (2 if is_real else 1)
    threaded = record.pick(3_000, short=100, reduced=1_000)
    return Course(server, start, size, min(seconds, MOST_SECONDS_IN_MEMORY) if is_real else seconds, objects, threaded)


def list_contestants(record: Record, name: str, course: Course) -> dict[str, Callable[[], Figures]]:
    """Return all ways to stream on servers of one kind; rclone is noted as absent where it is not here."""
    found: dict[str, Callable[[], Figures]] = {OURS: course.migrate}
    rclone = programs.find_rclone()
    if rclone is None:
        record.absent |= dict.fromkeys(("rclone", "rclone unchecked"), programs.MISSING)
    else:
        record.versions["rclone"] = programs.read_version(rclone)
        found["rclone"] = partial(course.stream_by_rclone, rclone)
        if name not in BY_PARTS:
            unchecked = (*programs.RCLONE_UNCHECKED, *programs.RCLONE_UNHASHED)
            found["rclone unchecked"] = partial(course.stream_by_rclone, rclone, *unchecked)
    if name == "20 kB":
        found[THREADED] = course.stream_in_threads
    return {f"{who}, {name}, {course.server}": measure for who, measure in found.items()}


def tell(record: Record, all_servers: dict[str, Start]) -> None:
    """Hold the medians against the targets."""
    expect, rate, pace, cpu = partial(expect_worst, record), RATE, "megabytes_per_second", "cpu_ms_per_mb"
    for name in record.pick(tuple(SIZES), short=("20 kB", "1 MB")):
        servers = list(list_servers(name, all_servers))
        medians = partial(list_medians, record, servers, f"{OURS}, {name}")
        against, against_unchecked, against_threads = (
            partial(list_ratios, record, servers, f"{OURS}, {name}", f"{rival}, {name}")
            for rival in ("rclone", "rclone unchecked", THREADED)
        )
        if name == "20 kB":
            expect("20 kB streamed, against rclone", against(rate), at_least=2, unit="x", tells_each=True)
            expect("20 kB streamed, against rclone unchecked", against_unchecked(rate), at_least=1.2, unit="x")
            expect("20 kB streamed, against boto3 in threads", against_threads(rate), at_least=10, unit="x")
            expect("20 kB streamed, CPU against rclone unchecked", against_unchecked(CPU), at_most=0.5, unit="x")
            expect("20 kB streamed, entries/s", medians(rate))
        else:
            expect(f"{name} streamed, MB/s against rclone", against(pace), at_least=1.2, unit="x", tells_each=True)
            expect(f"{name} streamed, CPU a MB against rclone", against(cpu), at_most=1, unit="x")
            expect(f"{name} streamed, MB/s against rclone unchecked", against_unchecked(pace), unit="x")
            expect(f"{name} streamed, MB/s", medians(pace))
            expect(f"{name} streamed, CPU a MB", medians(cpu), unit=" ms", less_is_better=True)
        if TLS in servers:
            largest = record.median(f"{OURS}, {name}, {TLS}", "largest_mb")
            record.expect(f"memory of the largest worker process, {name}, {TLS}", largest, at_most=300, unit=" MB")
    for name in WEIGHED:
        seen = partial(record.median, f"memory, {name}")
        record.expect(f"memory of the largest worker process, {name}", seen("largest_mb"), at_most=300, unit=" MB")
        record.expect(f"memory of all its processes, {name}", seen("memory_mb"), unit=" MB")


def weigh(sizes: str, seconds: float) -> Figures:
    """Let `rowferry worker` stream objects of these sizes; its memory is what is asked for."""
    with fake_s3(WEIGHED_LATENCY_MS, sizes=sizes) as legacy, fake_s3(WEIGHED_LATENCY_MS, sizes=sizes) as production:
        watch = Watch(production, legacy, weighs=True)
        fill_queue(watch, int(seconds * (12_000 if sizes == "20000" else 200)))
        samples = run_for(seconds, watch, [Launch(())]).samples
    return {
        "memory_mb": max(sample.memory_mb for sample in samples),
        "own_memory_mb": max(sample.own_memory_mb for sample in samples),
        "largest_mb": max(sample.largest_mb for sample in samples),
        "megabytes_per_second": samples[-1].megabytes / samples[-1].at,
    }
