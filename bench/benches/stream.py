"""Two endpoints: 20 kB objects streamed against boto3 in threads, and the worker's memory whatever an object's size."""

from collections.abc import Callable
from functools import partial

from bench.baselines import programs
from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.migration import enqueue_rows, make_rows, read_span, run_worker
from bench.record import Figures, Record
from bench.timing import run_script

LATENCY_MS = 70
BODY_BYTES = 20_000
IN_FLIGHT = 512
THREADS = 128
BATCH_SIZE = 250
SLOTS = 4

SIZES = {"20 kB": (20_000, 2_000), "1 MB": (1_000_000, 300), "30 MB": (30_000_000, 48), "100 MB": (100_000_000, 24)}
"""The sizes whose memory is looked at: bytes, and how many objects, which is more than are in flight."""
FEW_IN_FLIGHT = 16
MANY = "30 MB, 64 in flight"
MANY_IN_FLIGHT = 64
"""What --parallel is by default."""


def run(record: Record) -> None:
    """Measure the throughput first, the memory then."""
    entries, copies = record.pick(15_000, short=300), record.pick(3_000, short=200)
    record.settings |= {"latency_ms": LATENCY_MS, "body_bytes": BODY_BYTES, "in_flight": IN_FLIGHT, "slots": SLOTS}
    record.settings |= {"batch_size": BATCH_SIZE, "entries": entries, "copies_of_boto3": copies}
    record.settings |= {"boto3_threads": THREADS, "in_flight_for_memory": FEW_IN_FLIGHT}
    shrink = record.pick(1, short=10)
    sizes: dict[str, Callable[[], Figures]] = {
        size: partial(weigh, body_bytes // shrink, record.pick(count, short=2), FEW_IN_FLIGHT)
        for size, (body_bytes, count) in SIZES.items()
    }
    body_bytes, _ = SIZES["30 MB"]
    sizes[MANY] = partial(weigh, body_bytes // shrink, record.pick(96, short=2), MANY_IN_FLIGHT)
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        contestants = {"rowferry": partial(stream, entries), "boto3 in threads": partial(stream_in_threads, copies)}
        record.interleave(contestants, repetitions=record.pick(3, short=1))
        record.interleave(sizes, repetitions=1)
    tell(record)


def tell(record: Record) -> None:
    """Hold the medians against the targets."""
    rate, cpu = "entries_per_second", "cpu_ms_per_entry"
    record.compare("20 kB objects streamed, against boto3 in threads", rate, "rowferry", "boto3 in threads", at_least=3)
    record.expect("entries/s streamed", record.median("rowferry", rate))
    record.expect("CPU of the worker per entry streamed", record.median("rowferry", cpu), unit=" ms")
    record.compare("the same against boto3 in threads", cpu, "rowferry", "boto3 in threads")
    for size in SIZES:
        what = f"memory of the worker, {size} objects, {FEW_IN_FLIGHT} in flight"
        record.expect(what, record.median(size, "memory_mb"), unit=" MB")
    record.expect(f"memory of the worker, {MANY}", record.median(MANY, "memory_mb"), unit=" MB")
    record.compare("memory with 100 MB objects against 30 MB", "memory_mb", "100 MB", "30 MB", at_most=1.25)


def stream(entries: int) -> Figures:
    """Let one worker stream all entries from one endpoint to the other."""
    arguments = (f"--parallel={IN_FLIGHT}", f"--slots={SLOTS}")
    return migrate(entries, BATCH_SIZE, LATENCY_MS, BODY_BYTES, *arguments)


def weigh(body_bytes: int, entries: int, in_flight: int) -> Figures:
    """Let one worker stream objects of this size; its memory is what is asked for."""
    return migrate(entries, in_flight, 5, body_bytes, f"--parallel={in_flight}", "--slots=2")


def migrate(entries: int, batch_size: int, latency_ms: float, body_bytes: int, *arguments: str) -> Figures:
    """Migrate between two fake S3 servers."""
    make_rows(entries)
    with (
        fake_s3(latency_ms, body_bytes=body_bytes) as legacy,
        fake_s3(latency_ms, body_bytes=body_bytes) as production,
    ):
        enqueue_rows(legacy.endpoint_url, production.endpoint_url, batch_size)
        used = run_worker(*arguments)
        assert production.read_stats()["objects"] == entries
        stats = [server.read_stats() for server in (legacy, production)]
    seconds = read_span(entries)
    return {
        "entries_per_second": entries / seconds,
        "megabytes_per_second": entries * body_bytes / 1e6 / seconds,
        "cpu_ms_per_entry": 1000 * used.cpu_seconds / entries,
        "memory_mb": used.memory_mb,
        "fake_s3_cpu_ms_per_entry": 1000 * sum(one["cpu_seconds"] for one in stats) / entries,
    }


def stream_in_threads(copies: int) -> Figures:
    """Let boto3 get and put as many objects in threads; no row is touched."""
    with fake_s3(LATENCY_MS) as legacy, fake_s3(LATENCY_MS) as production:
        command = ["bench.baselines.boto3_threads", f"--url={legacy.endpoint_url}", f"--to={production.endpoint_url}"]
        command += [f"--objects={copies}", f"--threads={THREADS}"]
        seconds, cpu_seconds, memory_mb = run_script(command, programs.ACCOUNT)
        assert production.read_stats()["objects"] == copies
    return {
        "entries_per_second": copies / seconds,
        "cpu_ms_per_entry": 1000 * cpu_seconds / copies,
        "memory_mb": memory_mb,
    }
