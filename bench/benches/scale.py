"""1, 2, 4 and 8 worker processes where latency is the bound: how near to linear the throughput grows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from bench.environment import Usage, fake_s3, read_postgres_version, running_postgres
from bench.migration import check_rows, enqueue_rows, fix_pace, make_rows, run_worker
from bench.record import Figures, Record
from rowferry.db.connection import connect

LATENCY_MS = 400
IN_FLIGHT = 32
"""Of each worker: so few that eight of them do not fill two cores."""
BATCH_SIZE = 20
WORKERS = (1, 2, 4, 8)

TOGETHER = """
with spans as (
    select worker_id, min(finished_at) as began, max(finished_at) as ended
    from rowferry.batch_queue
    where status = 'DONE'
    group by worker_id
), span as (
    select max(began) as began, min(ended) as ended, count(*)::int as workers from spans
)
select s.workers, extract(epoch from s.ended - s.began)::float as seconds, sum(q.migrated)::int as migrated
from span as s
inner join rowferry.batch_queue as q on q.finished_at > s.began and q.finished_at <= s.ended
group by s.workers, s.began, s.ended
"""
"""What was done while all workers were at it: from the last one's first batch to the first one's last."""


def run(record: Record) -> None:
    """Measure each number of workers."""
    seconds = record.pick(12, short=1)
    record.settings |= {"latency_ms": LATENCY_MS, "in_flight_of_each": IN_FLIGHT, "batch_size": BATCH_SIZE}
    record.settings |= {"seconds_of_work": seconds}
    with running_postgres():
        record.versions["postgresql"] = read_postgres_version()
        contestants: dict[str, Callable[[], Figures]] = {
            name_of(workers): partial(migrate, workers, seconds) for workers in record.pick(WORKERS, short=(1, 2))
        }
        record.interleave(contestants, repetitions=record.pick(3, short=1))
    alone = record.median(name_of(1), "entries_per_second")
    for workers in record.pick(WORKERS, short=(1, 2))[1:]:
        share = record.median(name_of(workers), "entries_per_second") / (workers * alone)
        record.expect(
            f"throughput of {workers} workers, as a share of {workers} times that of one",
            share,
            at_least=0.9 if workers == WORKERS[-1] else None,
        )


def name_of(workers: int) -> str:
    """Return the contestant's name."""
    return f"{workers} worker{'s' * (workers > 1)}"


def migrate(workers: int, seconds: int) -> Figures:
    """Let so many worker processes share a queue that keeps them busy for about so many seconds.

    Where one of them has started so late that the others were done, all do it again with twice as much.
    """
    for times in (1, 2, 4, 8):
        entries = times * seconds * workers * IN_FLIGHT * 1000 // LATENCY_MS
        used = work_together(workers, entries)
        with connect("bench", autocommit=True) as connection:
            together = connection.execute(TOGETHER.encode()).fetchone()
        if together is not None and together["workers"] == workers:
            return {
                "entries_per_second": together["migrated"] / together["seconds"],
                "seconds_together": together["seconds"],
                "cpu_ms_per_entry": 1000 * sum(one.cpu_seconds for one in used) / entries,
            }
    raise AssertionError(f"{workers} workers were never at it together")


def work_together(workers: int, entries: int) -> list[Usage]:
    """Migrate so many entries with so many workers, all started at once."""
    make_rows(entries)
    with fake_s3(LATENCY_MS) as server, ThreadPoolExecutor(workers) as pool:
        enqueue_rows(server.endpoint_url, server.endpoint_url, BATCH_SIZE)
        runs = [pool.submit(run_worker, *fix_pace(IN_FLIGHT)) for _ in range(workers)]
        used = [run.result() for run in runs]
    check_rows()
    return used


def draw(axis: Any, result: dict[str, Any]) -> None:
    """Plot the throughput against the number of workers, beside the line of perfect scaling."""
    summary = {int(name.split()[0]): figures["entries_per_second"] for name, figures in result["summary"].items()}
    counts = sorted(summary)
    throughput = [summary[count]["median"] for count in counts]
    spread = [
        [summary[n]["median"] - summary[n]["min"] for n in counts],
        [summary[n]["max"] - summary[n]["median"] for n in counts],
    ]
    axis.plot(counts, [throughput[0] * count for count in counts], color="#8e8e8e", linestyle="--", label="linear")
    axis.errorbar(counts, throughput, yerr=spread, color="#56a64b", marker="o", capsize=3, label="rowferry")
    axis.set_xlabel("worker processes")
    axis.set_ylabel("entries/s")
    axis.set_xticks(counts)
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, fontsize=8)
