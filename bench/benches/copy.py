"""One worker process without a flag, copying at 70 ms of latency, against other ways to copy, in the same run."""

from collections.abc import Callable, Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from bench.baselines import programs
from bench.environment import fake_s3, read_postgres_version, run_measured, running_postgres
from bench.migration import check_rows, make_rows
from bench.record import Figures, Record
from bench.timed import BATCH_SIZE, Launch, fill_queue, run_for
from bench.timing import run_script
from bench.watch import Watch, between
from rowferry_lab.servers.postgres import EmbeddedPostgres

LATENCY_MS = 70
IN_FLIGHT = 512
"""Of rclone, s5cmd and awscrt."""
THREADS = 256
"""Of boto3: 64 to 256 of them are equally fast, since Python's lock is their bound."""
PROCESSES = 10
ROWS_AT_ONCE = 100
"""Of each of the ten processes: one batch, as its own advice was."""
MOST_PER_SECOND = 26_000


def run(record: Record) -> None:
    """Measure all contestants in turn."""
    seconds = record.pick(30.0, short=4.0, reduced=14.0)
    copies = record.pick(16_000, short=300, reduced=10_000)
    threaded, processes = record.pick(6_000, short=300, reduced=3_000), record.pick(PROCESSES, short=2)
    one_by_one = record.pick(PROCESSES * ROWS_AT_ONCE, short=20)
    record.settings |= {"latency_ms": LATENCY_MS, "in_flight_of_programs": IN_FLIGHT, "batch_size": BATCH_SIZE}
    record.settings |= {"seconds": seconds, "copies_of_programs": copies, "copies_of_boto3": threaded}
    record.settings |= {"boto3_threads": THREADS, "processes": processes, "entries_of_processes": one_by_one}
    with running_postgres() as postgres:
        record.versions["postgresql"] = read_postgres_version()
        contestants: dict[str, Callable[[], Figures]] = {
            "rowferry": lambda: migrate(postgres, seconds),
            **find_awscrt(record, 2 * copies),
            "boto3 in threads": lambda: copy_in_threads(threaded),
            "ten processes": lambda: migrate_one_by_one(one_by_one, processes),
            **find_programs(record, copies),
        }
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=2))
    tell(record)


def tell(record: Record) -> None:
    """Hold the medians against the targets."""
    rate, cpu = "entries_per_second", "cpu_ms_per_entry"
    record.expect("entries/s, one worker without a flag, 70 ms latency", record.median("rowferry", rate))
    record.compare("entries/s against boto3 in 256 threads", rate, "rowferry", "boto3 in threads", at_least=6)
    record.compare("entries/s against s5cmd's copies/s", rate, "rowferry", "s5cmd", at_least=2)
    record.compare("entries/s against rclone's copies/s", rate, "rowferry", "rclone", at_least=3)
    record.compare("the same, rclone with all checks off", rate, "rowferry", "rclone unchecked")
    record.compare("entries/s against ten processes", rate, "rowferry", "ten processes")
    record.expect("CPU of the worker per entry", record.median("rowferry", cpu), at_most=0.2, unit=" ms")
    record.compare("the same against boto3 in threads", cpu, "rowferry", "boto3 in threads")
    record.compare("the same against awscrt alone, which updates no row", cpu, "rowferry", "awscrt alone")
    record.expect("memory of the worker", record.median("rowferry", "memory_mb"), unit=" MB")
    for name, figure in (("PostgreSQL", "postgresql_cpu_ms"), ("the fake S3 server", "fake_s3_cpu_ms_per_entry")):
        record.expect(f"CPU of {name} per entry", record.median("rowferry", figure), unit=" ms")
    record.expect("the worker's share of a core", record.median("rowferry", "cores_of_worker"))


def find_awscrt(record: Record, copies: int) -> dict[str, Callable[[], Figures]]:
    """Return awscrt; noted as absent where it is not here."""
    if find_spec("awscrt") is None:
        record.absent["awscrt alone"] = programs.MISSING
        return {}
    record.versions["awscrt"] = metadata.version("awscrt")
    return {"awscrt alone": lambda: copy_by_awscrt(copies)}


def find_programs(record: Record, copies: int) -> dict[str, Callable[[], Figures]]:
    """Return rclone, twice, and s5cmd; those that are not here are noted as absent."""
    rclone, s5cmd = programs.find_rclone(), programs.find_s5cmd()
    found: dict[str, Callable[[], Figures]] = {}
    if rclone:
        record.versions["rclone"] = programs.read_version(rclone)
        found["rclone"] = lambda: copy_by_program(copies, lambda url: programs.rclone_command(rclone, url, IN_FLIGHT))
        found["rclone unchecked"] = lambda: copy_by_program(
            copies, lambda url: programs.rclone_command(rclone, url, IN_FLIGHT, *programs.RCLONE_UNCHECKED)
        )
    else:
        record.absent |= dict.fromkeys(("rclone", "rclone unchecked"), programs.MISSING)
    if s5cmd:
        record.versions["s5cmd"] = programs.read_version(s5cmd)
        found["s5cmd"] = lambda: copy_by_program(copies, lambda url: programs.s5cmd_command(s5cmd, url, IN_FLIGHT))
    else:
        record.absent["s5cmd"] = programs.MISSING
    return found


def migrate(postgres: EmbeddedPostgres, seconds: float) -> Figures:
    """Let one worker process migrate for so long; the pace is that of the second half."""
    with fake_s3(LATENCY_MS) as server:
        watch = Watch(server, postgres_pid=postgres.pid, weighs=True)
        fill_queue(watch, int(seconds * MOST_PER_SECOND))
        seen = run_for(seconds, watch, [Launch()])
    begin, end = between(seen.samples, seconds / 2, seconds)
    database = end.postgres_cpu_seconds - begin.postgres_cpu_seconds
    return {
        **seen.figures(seconds / 2, seconds),
        "memory_mb": max(sample.memory_mb for sample in seen.samples),
        "postgresql_cpu_ms": 1000 * database / max(end.objects - begin.objects, 1),
    }


def copy_in_threads(copies: int) -> Figures:
    """Let boto3 copy as many objects in threads; no row is touched."""
    with fake_s3(LATENCY_MS) as server:
        command = [
            "bench.baselines.boto3_threads",
            f"--url={server.endpoint_url}",
            f"--objects={copies}",
            f"--threads={THREADS}",
        ]
        used = run_script(command, programs.ACCOUNT)
        assert server.read_stats()["objects"] == copies
    return count(copies, *used)


def copy_by_awscrt(copies: int) -> Figures:
    """Let nothing but awscrt copy as many objects; no row is touched."""
    with fake_s3(LATENCY_MS) as server:
        command = ["bench.baselines.awscrt_alone", f"--url={server.endpoint_url}", f"--objects={copies}"]
        used = run_script([*command, f"--in-flight={IN_FLIGHT}"], programs.ACCOUNT)
        assert server.read_stats()["objects"] == copies
    return count(copies, *used)


def migrate_one_by_one(entries: int, processes: int) -> Figures:
    """Let ten processes migrate as many entries, each one object at a time, in one batch each."""
    make_rows(entries)
    batch_size = -(-entries // processes)
    with fake_s3(LATENCY_MS) as server:
        command = ["bench.baselines.ten_processes", f"--url={server.endpoint_url}", f"--processes={processes}"]
        used = run_script([*command, f"--batch-size={batch_size}"], programs.ACCOUNT)
    check_rows()
    return count(entries, *used)


def copy_by_program(copies: int, command: Callable[[str], Sequence[str]]) -> Figures:
    """Let a program copy the prefix, its listing and its start included; no row is touched."""
    with fake_s3(LATENCY_MS, f"--objects={copies}") as server:
        used = run_measured(command(server.endpoint_url), programs.ACCOUNT)
        assert server.read_stats()["objects"] == copies
    return count(copies, used.wall_seconds, used.cpu_seconds, used.memory_mb)


def count(entries: int, seconds: float, cpu_seconds: float, memory_mb: float) -> Figures:
    """Return rate, CPU and memory."""
    return {
        "entries_per_second": entries / seconds,
        "cpu_ms_per_entry": 1000 * cpu_seconds / entries,
        "memory_mb": memory_mb,
    }


def draw(axis: Any, result: dict[str, Any]) -> None:
    """Plot the throughput of every contestant, with the CPU of an entry beside it."""
    summary = result["summary"]
    names = list(summary)[::-1]
    throughput = [summary[name]["entries_per_second"] for name in names]
    spread = [[one["median"] - one["min"] for one in throughput], [one["max"] - one["median"] for one in throughput]]
    colours = ["#56a64b" if name == "rowferry" else "#8e8e8e" for name in names]
    axis.barh(names, [one["median"] for one in throughput], xerr=spread, color=colours, capsize=3)
    for place, name in enumerate(names):
        cpu = summary[name]["cpu_ms_per_entry"]["median"]
        axis.text(throughput[place]["max"] * 1.02, place + 0.1, f" {cpu:.2g} ms CPU each", fontsize=7, va="bottom")
    axis.set_xlabel("objects a second (rowferry and ten processes: with their rows)")
    axis.set_xlim(0, 1.3 * max(one["max"] for one in throughput))
