"""The forms of entries against the plain one, in one run: pace at 70 ms of latency, enqueue, claim and read.

An object is copied in the same way whatever the form; what differs is the SQL over the rows. The pace counts objects,
so that a row of two counts twice.
"""

import time
from functools import partial
from typing import Any

from bench.environment import fake_s3, read_postgres_version, running_postgres
from bench.forms import FORMS, Form
from bench.record import Figures, Record
from bench.timed import Launch, run_for
from bench.watch import Watch
from rowferry.db.connection import Connection, connect
from rowferry.db.entries import EntryQueries
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_queues.migrate.spec import MIGRATE
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.sources.table import read_entries

LATENCY_MS = 70
MOST_PER_SECOND = 26_000
NOWHERE = "http://127.0.0.1:1"
COUNTS = "select sum(migrated + kept)::int as done, sum(entry_count)::int as rows from rowferry.batch_queue"


def run(record: Record) -> None:
    """Let each form be enqueued, claimed and copied in turn."""
    rows = record.pick(10_000_000, short=3_000)
    seconds = record.pick(30.0, short=3.0, reduced=12.0)
    names = record.pick(list(FORMS), short=list(FORMS)[::4])
    claims = record.pick(300, short=5)
    record.settings |= {"latency_ms": LATENCY_MS, "seconds": seconds, "rows": rows, "claims": claims}
    with running_postgres({"max_wal_size": "4GB"}):
        record.versions["postgresql"] = read_postgres_version()
        contestants = {
            name: partial(measure, form, rows, claims, seconds) for name, form in FORMS.items() if name in names
        }
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=1))
    for name in names[1:]:
        record.compare(f"objects/s, {name} against plain", "objects_per_second", name, "plain")
        record.compare(f"enqueue of {rows:,} rows, {name} against plain", "enqueue_seconds", name, "plain")
        record.compare(f"claim and read of a batch, {name} against plain", "claim_and_read_ms", name, "plain")


def measure(form: Form, rows: int, claims: int, seconds: float) -> Figures:
    """Enqueue and claim so many rows, then copy for so long."""
    return {**measure_queue(form, rows, claims), **measure_pace(form, seconds)}


def measure_queue(form: Form, rows: int, claims: int) -> Figures:
    """Return how long an enqueue takes, and a claim with the read of its entries."""
    form.make_rows(rows)
    plan = form.make_plan(NOWHERE, NOWHERE)
    with connect("bench", autocommit=True) as connection:
        began = time.monotonic()
        (enqueued,) = enqueue(connection, plan, EnqueueRequest(MIGRATE))
        enqueue_seconds = time.monotonic() - began
        assert enqueued.entries == rows, f"{enqueued.entries} of {rows} entries were enqueued"
        connection.execute("vacuum analyze rowferry.batch_queue")
    with connect("bench") as connection:
        queries = EntryQueries.of(connection, plan.entries[0])
        connection.rollback()
        claim_and_read(connection, queries, 5)
        began = time.monotonic()
        read = claim_and_read(connection, queries, claims)
        elapsed = time.monotonic() - began
    return {
        "enqueue_seconds": enqueue_seconds,
        "enqueued_rows_per_second": rows / enqueue_seconds,
        "claim_and_read_ms": 1000 * elapsed / claims,
        "read_entries": read,
    }


def claim_and_read(connection: Connection, queries: EntryQueries, claims: int) -> int:
    """Claim so many batches and read their entries; return how many these were. Rolls back, and finishes none."""
    read = 0
    for _ in range(claims):
        batch = claim_batch(connection, ["migrate"])
        assert batch is not None
        read += len(read_entries(connection, queries, batch.payload["first"], batch.payload["last"]))
        connection.rollback()
    return read


def measure_pace(form: Form, seconds: float) -> Figures:
    """Let one worker process without a flag migrate for so long; the pace is that of the second half."""
    form.make_rows(int(seconds * MOST_PER_SECOND) // form.objects)
    with fake_s3(LATENCY_MS) as server:
        with connect("bench", autocommit=True) as connection:
            enqueue(connection, form.make_plan(server.endpoint_url, server.endpoint_url), EnqueueRequest(MIGRATE))
        seen = run_for(seconds, Watch(server), [Launch()], counts=COUNTS)
    figures = seen.figures(seconds / 2, seconds)
    return {
        "objects_per_second": figures["entries_per_second"],
        "cpu_ms_per_object": figures["cpu_ms_per_entry"],
        "rows_moved": seen.rows,
    }


def draw(axis: Any, result: dict[str, Any]) -> None:
    """One bar for the pace of each form, with what an enqueue takes of the plain one's time beside it."""
    summary = result["summary"]
    names = list(summary)[::-1]
    plain = summary["plain"]["enqueue_seconds"]["median"]
    pace = [summary[name]["objects_per_second"]["median"] for name in names]
    axis.barh(names, pace, color=["#56a64b" if name == "plain" else "#3274d9" for name in names])
    for place, name in enumerate(names):
        ratio = summary[name]["enqueue_seconds"]["median"] / plain
        axis.text(pace[place] * 1.01, place, f" enqueue {ratio:.1f} x", fontsize=7, va="center")
    axis.set_xlim(0, 1.25 * max(pace))
    axis.set_xlabel("objects a second, one worker process, 70 ms of latency", fontsize=8)
