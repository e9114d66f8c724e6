"""Entries a second, CPU an entry and memory of one worker at 70 ms latency, against its rivals in the same run."""

from bench.migration import enqueue_rows, make_rows, read_span, run_worker
from bench.record import Figures, Record
from bench.stage import read_postgres_version, running_postgres, stand_in

LATENCY_MS = 70


def run(record: Record) -> None:
    """Measure all contestants in turn."""
    entries = record.pick(60_000, short=600)
    record.settings |= {"latency_ms": LATENCY_MS, "entries": entries, "batch_size": 100, "parallel": 512, "slots": 8}
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        record.interleave({"rowferry": lambda: migrate(entries)}, repetitions=record.pick(5, short=1))
    speed = record.median("rowferry", "entries_per_second")
    record.expect("entries/s of one worker process, 70 ms latency", speed, at_least=3000)
    cpu = record.median("rowferry", "cpu_ms_per_entry")
    record.expect("CPU of the worker per entry", cpu, at_most=0.2, unit=" ms")


def migrate(entries: int) -> Figures:
    """Let one worker migrate all entries."""
    make_rows(entries)
    with stand_in(LATENCY_MS) as server:
        enqueue_rows(server.url, server.url, 100)
        used = run_worker("--parallel=512", "--slots=8")
        stats = server.read_stats()
    return {
        "entries_per_second": entries / read_span(entries),
        "cpu_ms_per_entry": 1000 * used.cpu_seconds / entries,
        "memory_mb": used.memory_mb,
        "stand_in_cpu_ms_per_request": 1000 * stats["cpu_seconds"] / stats["requests"],
    }
