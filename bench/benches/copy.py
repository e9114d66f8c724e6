"""Entries a second, CPU an entry and memory of one worker at 70 ms latency, against the baselines in the same run."""

from collections.abc import Callable, Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from bench.baselines import programs
from bench.environment import fake_s3, read_postgres_version, run_measured, running_postgres
from bench.migration import check_rows, enqueue_rows, make_rows, read_span, run_worker
from bench.processor import ThreadClock, read_cpu_seconds
from bench.record import Figures, Record
from bench.timing import run_script
from rowferry_lab.servers.postgres import EmbeddedPostgres

LATENCY_MS = 70
IN_FLIGHT = 512
BATCH_SIZE = 500
SLOTS = 4
THREADS = 128
"""Of boto3: 64 to 256 of them are equally fast, since Python's lock is their bound."""
PROCESSES = 10
ROWS_AT_ONCE = 100
"""Of each of the ten processes: one batch, as its own advice was."""


def run(record: Record) -> None:
    """Measure all contestants in turn."""
    entries, copies = record.pick(80_000, short=500), record.pick(8_000, short=300)
    threaded, processes = record.pick(4_000, short=200), record.pick(PROCESSES, short=2)
    one_by_one = record.pick(PROCESSES * ROWS_AT_ONCE, short=20)
    record.settings |= {"latency_ms": LATENCY_MS, "in_flight": IN_FLIGHT, "batch_size": BATCH_SIZE, "slots": SLOTS}
    record.settings |= {"entries": entries, "copies_of_programs": copies, "copies_of_boto3": threaded}
    record.settings |= {"boto3_threads": THREADS, "processes": processes, "entries_of_processes": one_by_one}
    with running_postgres() as postgres:
        record.versions["postgresql"] = read_postgres_version()
        contestants: dict[str, Callable[[], Figures]] = {
            "rowferry": lambda: migrate(postgres, entries),
            **find_awscrt(record, 4 * copies),
            "boto3 in threads": lambda: copy_in_threads(threaded),
            "ten processes": lambda: migrate_one_by_one(one_by_one, processes),
            **find_programs(record, copies),
        }
        record.interleave(contestants, repetitions=record.pick(3, short=1))
    tell(record)


def tell(record: Record) -> None:
    """Hold the medians against the targets."""
    rate, cpu = "entries_per_second", "cpu_ms_per_entry"
    record.expect("entries/s, one worker, 70 ms latency", record.median("rowferry", rate), at_least=3000)
    record.compare("entries/s against ten processes", rate, "rowferry", "ten processes", at_least=20)
    record.compare("entries/s against rclone's copies/s", rate, "rowferry", "rclone", at_least=3)
    record.compare("the same, rclone with all checks off", rate, "rowferry", "rclone unchecked", at_least=3)
    record.compare("entries/s against s5cmd's copies/s", rate, "rowferry", "s5cmd", at_least=3)
    record.expect("CPU of the worker per entry", record.median("rowferry", cpu), at_most=0.2, unit=" ms")
    record.compare("the same against boto3 in threads", cpu, "rowferry", "boto3 in threads", at_most=0.2)
    record.compare("the same against awscrt alone, which updates no row", cpu, "rowferry", "awscrt alone")
    record.expect("memory of the worker", record.median("rowferry", "memory_mb"), unit=" MB")
    for name, figure in (("PostgreSQL", "postgresql_cpu_ms"), ("the fake S3 server", "fake_s3_cpu_ms")):
        record.expect(f"CPU of {name} per entry", record.median("rowferry", figure), unit=" ms")
    share = record.median("rowferry", "event_loop_share_of_a_core")
    record.expect("the event-loop thread's share of a core", share)
    record.expect("cores busy with worker, PostgreSQL and fake S3 server", record.median("rowferry", "cores_busy"))


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


def migrate(postgres: EmbeddedPostgres, entries: int) -> Figures:
    """Let one worker migrate all entries."""
    make_rows(entries)
    clock = ThreadClock()
    with fake_s3(LATENCY_MS) as server:
        enqueue_rows(server.endpoint_url, server.endpoint_url, BATCH_SIZE)
        database_before = read_cpu_seconds(postgres.pid)
        used = run_worker(f"--parallel={IN_FLIGHT}", f"--slots={SLOTS}", on_start=clock.watch)
        database = read_cpu_seconds(postgres.pid) - database_before
        threads = clock.stop()
        stats = server.read_stats()
    seconds = read_span(entries)
    return {
        **count(entries, seconds, used.cpu_seconds, used.memory_mb),
        "event_loop_cpu_ms": 1000 * threads["event_loop"] / entries,
        "event_loop_share_of_a_core": threads["event_loop"] / seconds,
        "postgresql_cpu_ms": 1000 * database / entries,
        "fake_s3_cpu_ms": 1000 * stats["cpu_seconds"] / entries,
        "cores_busy": (used.cpu_seconds + database + stats["cpu_seconds"]) / seconds,
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
