"""Objects streamed between two endpoints: pace, CPU and memory of `rowferry worker` without a flag, and of others."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.baselines import programs
from bench.environment import fake_s3, read_postgres_version, run_measured, running_postgres
from bench.record import Figures, Record
from bench.timed import BATCH_SIZE, Launch, fill_queue, run_for
from bench.timing import run_script
from bench.watch import Watch
from rowferry_lab.servers.s3_servers import FakeS3Server


@dataclass(frozen=True, slots=True)
class Size:
    """Objects of one size."""

    body_bytes: int
    latency_ms: int
    in_flight: int
    """Of rclone, with which it is fastest here."""
    objects: int
    """That rclone copies: some seconds of work."""
    rows_per_second: int
    """More than any contestant reaches."""


SIZES = {
    "20 kB": Size(20_000, 70, 256, 12_000, 12_000),
    "1 MB": Size(1_000_000, 10, 64, 8_000, 3_000),
    "100 MB": Size(100_000_000, 10, 8, 120, 60),
}
THREADS = 128
"""Of boto3: 64 to 256 of them are equally fast, since Python's lock is their bound."""
WEIGHED = {"20 kB": "20000", "30 MB": "30000000", "100 MB": "100000000", "mixed": "20000,30000000,100000000"}
"""The sizes of objects whose memory is looked at."""
WEIGHED_LATENCY_MS = 10


def run(record: Record) -> None:
    """Measure the throughput of each size, then the memory."""
    seconds, weighed = record.pick(30.0, short=4.0, reduced=12.0), record.pick(20.0, short=4.0, reduced=10.0)
    record.settings |= {"seconds": seconds, "seconds_for_memory": weighed, "batch_size": BATCH_SIZE}
    for name, size in SIZES.items():
        record.settings[name] = f"{size.latency_ms} ms of latency, rclone with {size.in_flight} transfers"
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        for name, size in record.pick(SIZES, short={name: SIZES[name] for name in ("20 kB", "1 MB")}).items():
            objects = record.pick(size.objects, short=100, reduced=size.objects // 2)
            contestants: dict[str, Callable[[], Figures]] = {
                f"rowferry, {name}": partial(migrate, size, seconds),
                **find_rclone(record, name, size, objects),
            }
            if name == "20 kB":
                copies = record.pick(3_000, short=100, reduced=1_500)
                contestants["boto3 in threads, 20 kB"] = partial(stream_in_threads, size, copies)
            record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=2))
        sizes = {f"memory, {name}": partial(weigh, sizes, weighed) for name, sizes in WEIGHED.items()}
        record.interleave(sizes, repetitions=1)
    tell(record)


def tell(record: Record) -> None:
    """Hold the medians against the targets."""
    rate, cpu = "entries_per_second", "cpu_ms_per_entry"
    ours, rclone, unchecked, boto = (f"{who}, 20 kB" for who in ("rowferry", "rclone", "rclone unchecked", THREADED))
    record.compare("20 kB streamed, against rclone", rate, ours, rclone, at_least=2)
    record.compare("20 kB streamed, against rclone unchecked", rate, ours, unchecked, at_least=1.2)
    record.compare("20 kB streamed, against boto3 in threads", rate, ours, boto, at_least=10)
    record.compare("20 kB streamed, CPU against rclone unchecked", cpu, ours, unchecked, at_most=0.5)
    record.expect("20 kB streamed, entries/s", record.median(ours, rate))
    for name in record.pick(("1 MB", "100 MB"), short=("1 MB",)):
        ours, rclone, unchecked = (f"{who}, {name}" for who in ("rowferry", "rclone", "rclone unchecked"))
        record.compare(f"{name} streamed, MB/s against rclone", "megabytes_per_second", ours, rclone, at_least=1.2)
        record.compare(f"{name} streamed, CPU a MB against rclone", "cpu_ms_per_mb", ours, rclone, at_most=1)
        record.compare(f"{name} streamed, MB/s against rclone unchecked", "megabytes_per_second", ours, unchecked)
        record.expect(f"{name} streamed, MB/s", record.median(ours, "megabytes_per_second"))
        record.expect(f"{name} streamed, CPU a MB", record.median(ours, "cpu_ms_per_mb"), unit=" ms")
    for name in WEIGHED:
        seen = partial(record.median, f"memory, {name}")
        record.expect(f"memory of the largest worker process, {name}", seen("largest_mb"), at_most=300, unit=" MB")
        record.expect(f"memory of all its processes, {name}", seen("memory_mb"), unit=" MB")


THREADED = "boto3 in threads"


def find_rclone(record: Record, name: str, size: Size, objects: int) -> dict[str, Callable[[], Figures]]:
    """Return rclone with its checks and without; noted as absent where it is not here."""
    rclone = programs.find_rclone()
    if rclone is None:
        record.absent |= dict.fromkeys((f"rclone, {name}", f"rclone unchecked, {name}"), programs.MISSING)
        return {}
    record.versions["rclone"] = programs.read_version(rclone)
    command = programs.rclone_between_command(rclone, size.in_flight)
    return {
        f"rclone, {name}": partial(stream_by_rclone, command, size, objects),
        f"rclone unchecked, {name}": partial(
            stream_by_rclone, [*command, *programs.RCLONE_UNCHECKED, *programs.RCLONE_UNHASHED], size, objects
        ),
    }


def two_servers(size: Size, objects: int = 0) -> tuple[FakeS3Server, FakeS3Server]:
    """Return the legacy and the production server, to be started."""
    listed = f"--objects={objects}"
    return (
        fake_s3(size.latency_ms, listed, body_bytes=size.body_bytes),
        fake_s3(size.latency_ms, body_bytes=size.body_bytes),
    )


def migrate(size: Size, seconds: float) -> Figures:
    """Let `rowferry worker` stream; the pace is that of the second half."""
    legacy, production = two_servers(size)
    with legacy, production:
        watch = Watch(production, legacy, weighs=True)
        fill_queue(watch, int(seconds * size.rows_per_second))
        seen = run_for(seconds, watch, [Launch(())])
    figures = seen.figures(seconds / 2, seconds)
    pace = max(figures["megabytes_per_second"], 1e-3)
    return {
        **figures,
        "cpu_ms_per_mb": 1000 * figures["cores_of_worker"] / pace,
        "memory_mb": max(sample.memory_mb for sample in seen.samples),
    }


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


def stream_by_rclone(command: list[str], size: Size, objects: int) -> Figures:
    """Let rclone copy a prefix from one server to the other, its listing and its start included; no row is touched."""
    legacy, production = two_servers(size, objects)
    with legacy, production:
        environment = programs.rclone_remotes(legacy.endpoint_url, production.endpoint_url)
        used = run_measured(command, environment)
        assert production.read_stats()["objects"] == objects
    return count(size, objects, used.wall_seconds, used.cpu_seconds, used.memory_mb)


def stream_in_threads(size: Size, objects: int) -> Figures:
    """Let boto3 get and put as many objects in threads; no row is touched."""
    legacy, production = two_servers(size)
    with legacy, production:
        command = ["bench.baselines.boto3_threads", f"--url={legacy.endpoint_url}", f"--to={production.endpoint_url}"]
        used = run_script([*command, f"--objects={objects}", f"--threads={THREADS}"], programs.ACCOUNT)
        assert production.read_stats()["objects"] == objects
    return count(size, objects, *used)


def count(size: Size, objects: int, seconds: float, cpu_seconds: float, memory_mb: float) -> Figures:
    """Return rate, CPU and memory."""
    megabytes = objects * size.body_bytes / 1e6
    return {
        "entries_per_second": objects / seconds,
        "megabytes_per_second": megabytes / seconds,
        "cpu_ms_per_entry": 1000 * cpu_seconds / objects,
        "cpu_ms_per_mb": 1000 * cpu_seconds / megabytes,
        "memory_mb": memory_mb,
    }


def draw(axis: Any, result: dict[str, Any]) -> None:
    """Plot the throughput of each size, as a multiple of rclone's."""
    summary = result["summary"]
    for place, who in enumerate(("rowferry", "rclone", "rclone unchecked")):
        names = [name for name in SIZES if f"{who}, {name}" in summary]
        paces = [summary[f"{who}, {name}"]["megabytes_per_second"]["median"] for name in names]
        base = [summary[f"rclone, {name}"]["megabytes_per_second"]["median"] for name in names]
        at = [number + 0.27 * place for number in range(len(names))]
        bars = axis.bar(at, [pace / of for pace, of in zip(paces, base, strict=True)], width=0.25, label=who)
        axis.bar_label(bars, [f"{pace:,.0f}" for pace in paces], fontsize=7)
        axis.set_xticks([number + 0.27 for number in range(len(names))], names)
    axis.set_ylabel("throughput against rclone's\n(numbers: MB/s)")
    axis.legend(frameon=False, fontsize=8)
