"""Batches that are run again over rows that are production already: nothing to copy, nothing to update."""

from functools import partial

from bench.environment import execute, fake_s3, read_postgres_version, running_postgres
from bench.migration import enqueue_rows, make_rows, run_worker
from bench.record import Figures, Record
from rowferry.db.connection import connect

BATCH_SIZE = 1000
FINISH = "update pictures set path = 'avatar/' || substr(path, 7)"
REQUEUE = "update rowferry.batch_queue set status = 'INIT' where status = 'DONE'"
VACUUM = "vacuum analyze pictures, rowferry.batch_queue"
SPAN = """
select count(*)::int as batches, extract(epoch from max(finished_at) - min(started_at))::float as seconds
from rowferry.batch_queue
where status = 'DONE' and requeues = %(requeues)s
"""


def run(record: Record) -> None:
    """Finish all rows, let one worker pass over them once, and measure it as it does so again."""
    entries = record.pick(500_000, short=5_000)
    record.settings |= {"entries": entries, "batch_size": BATCH_SIZE}
    with running_postgres(), fake_s3(0) as server:
        record.versions["postgresql"] = read_postgres_version()
        make_rows(entries)
        enqueue_rows(server.endpoint_url, server.endpoint_url, BATCH_SIZE)
        execute(FINISH)
        execute(VACUUM)
        run_worker()
        passes = iter(range(1, 100))
        contestants = {"rowferry": lambda: partial(rerun, entries)(next(passes))}
        record.interleave(contestants, repetitions=record.pick(5, short=1))
    what = f"entries/s over finished work, batches of {BATCH_SIZE:,}"
    record.expect(what, record.median("rowferry", "entries_per_second"), at_least=50_000)


def rerun(entries: int, number: int) -> Figures:
    """Put all batches back in the queue, for the time `number`, and let one worker pass over them."""
    execute(REQUEUE)
    execute(VACUUM)
    used = run_worker()
    with connect("bench", autocommit=True) as connection:
        span = connection.execute(SPAN.encode(), {"requeues": number}).fetchone()
    assert span is not None
    assert span["batches"] == -(-entries // BATCH_SIZE), f"{span['batches']} batches were run again"
    return {
        "entries_per_second": entries / span["seconds"],
        "batches_per_second": span["batches"] / span["seconds"],
        "cpu_ms_per_batch": 1000 * used.cpu_seconds / span["batches"],
    }
